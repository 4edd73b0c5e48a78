/** The bare servers' variants of the rows that are measured on a running server. */
import { type Served, withFloor } from "../floor/floor_server.ts";
import type { RuntimeName } from "../support/deployment.ts";
import { pageWorkload } from "../support/workloads.ts";
import type { Measurement } from "./measurement.ts";
import { measureDelivery } from "./our_delivery.ts";
import { ingestWorkloads, measureWorkloads } from "./ours.ts";
import { type BenchContext, INGEST_ROWS, PAGE_EVENTS, type Subject } from "./rows.ts";

export function floorSubject(serverRuntime: RuntimeName, context: BenchContext): Subject {
  const variant = (name: string, measure: (served: Served) => Promise<Measurement>) => [{
    name,
    isSameWork: false,
    measure: () => withFloor(name, serverRuntime, context.folder, measure),
  }];
  return {
    name: "floor",
    variantsOf(rowName) {
      const row = INGEST_ROWS[rowName];
      if (row !== undefined) {
        return variant("hash-store", (served) => {
          return measureWorkloads(ingestWorkloads(row), served, served, context);
        });
      }
      if (rowName === "replay-tail") {
        return variant("page", (served) => {
          return measureWorkloads([pageWorkload(null, PAGE_EVENTS)], served, served, context);
        });
      }
      if (rowName === "deliver") {
        return variant("forward", (served) => measureDelivery(served, context));
      }
      return [];
    },
  };
}
