/** Hooks for `SimulatedDisk` that fail, fill up or wait on request. */
import type { Fault, OperationHook, OperationKind } from "./simulated_disk.ts";

/** The `nth` operation of a kind from now on (the first is 1) fails; all others succeed. */
export function failNth(kind: OperationKind, nth: number, fault: Fault): OperationHook {
  let count = 0;
  return (operation) => operation.kind === kind && ++count === nth ? fault : null;
}

/** A write past `sizeBytes` of its file stores what fits, then fails with `errno`. */
export function noRoomAfter(sizeBytes: number, errno = "ENOSPC"): OperationHook {
  return ({ kind, position = 0, sizeBytes: wantedBytes = 0 }) => {
    if (kind !== "write" || position + wantedBytes <= sizeBytes) return null;
    return { errno, writtenBytes: Math.max(0, sizeBytes - position) };
  };
}

export interface Gate {
  hook: OperationHook;
  /** Resolves when an operation waits at the gate. */
  reached: Promise<void>;
  /** Releases it, with a fault if given; later operations pass. */
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
