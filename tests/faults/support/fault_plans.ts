/** The ways in which each disk operation can fail. */
import type { Fault, Operation, OperationKind } from "../../support/simulated_disk.ts";

/** A failure of one operation, and possibly of later ones. */
export interface FaultPlan {
  name: string;
  fault: Fault;
  /** A fault for the next operation of the given kind. */
  next?: { kind: OperationKind; fault: Fault };
  /** Whether all later writes by the same process fail in the same way. */
  stays?: boolean;
}

const NO_ROOM = ["ENOSPC", "EDQUOT", "EFBIG"];

/** Whether the contract requires the log to roll back this failed write and continue. */
export function isNoRoomFault({ errno }: Fault): boolean {
  return NO_ROOM.includes(errno);
}

function plain(...errnos: string[]): FaultPlan[] {
  return errnos.map((errno) => ({ name: errno, fault: { errno } }));
}

function writePlans(sizeBytes: number): FaultPlan[] {
  const parts: [part: string, writtenBytes: number][] = [
    ["before any byte", 0],
    ["after one byte", 1],
    ["half written", sizeBytes >> 1],
    ["after all but one byte", sizeBytes - 1],
    ["after all bytes", sizeBytes],
  ];
  const failed = ["EIO", "EINTR", "ENOSPC", "EDQUOT"].flatMap((errno) =>
    parts.map(([part, writtenBytes]) => ({
      name: `${errno} ${part}`,
      fault: { errno, writtenBytes },
    }))
  );
  const noRoom = { errno: "ENOSPC", writtenBytes: sizeBytes >> 1 };
  const noRoomThen = (name: string, kind: OperationKind): FaultPlan => (
    { name, fault: noRoom, next: { kind, fault: { errno: "EIO" } } }
  );
  return [
    ...failed,
    ...plain("EFBIG"),
    { name: "ENOSPC in this and all later writes", fault: noRoom, stays: true },
    noRoomThen("ENOSPC, then EIO in the truncate", "truncate"),
    noRoomThen("ENOSPC, then EIO in the sync", "sync"),
  ];
}

const SYNC_PLANS: readonly FaultPlan[] = ["EIO", "ENOSPC", "EDQUOT", "EINTR"].flatMap((errno) =>
  (["shown", "dropped"] as const).map((pages) => ({
    name: `${errno}, pages ${pages}`,
    fault: { errno, pages },
  }))
);

const PLANS: Record<Exclude<OperationKind, "write">, readonly FaultPlan[]> = {
  open: plain("EIO", "EMFILE", "ENOSPC", "EDQUOT", "EINTR"),
  read: plain("EIO", "EINTR"),
  sync: SYNC_PLANS,
  truncate: plain("EIO", "EINTR", "ENOSPC"),
  size: plain("EIO"),
  close: plain("EIO", "EINTR"),
  list: plain("EIO", "EMFILE"),
  rename: plain("EIO", "ENOSPC", "EDQUOT"),
  remove: plain("EIO"),
  makeFolder: plain("EIO", "ENOSPC", "EDQUOT"),
  syncFolder: plain("EIO", "EMFILE", "ENOSPC"),
};

/** All ways in which an operation can fail. */
export function plansFor({ kind, sizeBytes }: Operation): readonly FaultPlan[] {
  return kind === "write" ? writePlans(sizeBytes!) : PLANS[kind];
}
