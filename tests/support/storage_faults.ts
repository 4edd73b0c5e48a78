/** Hooks that make operations on a `SimulatedDisk` fail, run out of space or block. */
import type { Fault, OperationHook, OperationKind } from "./simulated_disk.ts";

/** Fails the `nth` subsequent operation of a kind, counted from 1. All others succeed. */
export function failNth(kind: OperationKind, nth: number, fault: Fault): OperationHook {
  let count = 0;
  return (operation) => operation.kind === kind && ++count === nth ? fault : null;
}

/**
 * Makes a write that extends past offset `sizeBytes` store only the bytes before that offset, and
 * then fail with `errno`.
 */
export function noRoomAfter(sizeBytes: number, errno = "ENOSPC"): OperationHook {
  return ({ kind, position = 0, sizeBytes: wantedBytes = 0 }) => {
    if (kind !== "write" || position + wantedBytes <= sizeBytes) return null;
    return { errno, writtenBytes: Math.max(0, sizeBytes - position) };
  };
}

export interface Gate {
  hook: OperationHook;
  /** Resolves when an operation is waiting at the gate. */
  reached: Promise<void>;
  /** Releases the operation, with the fault if one is given. Later operations pass. */
  open(fault?: Fault): void;
}

/** Blocks the next operation of a kind until the gate is opened. */
export function gateAt(kind: OperationKind): Gate {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<Fault | null>();
  let isPassed = false;
  return {
    hook: (operation) => {
      if (operation.kind !== kind || isPassed) return null;
      isPassed = true;
      reached.resolve();
      return opened.promise;
    },
    reached: reached.promise,
    open: (fault) => opened.resolve(fault ?? null),
  };
}
