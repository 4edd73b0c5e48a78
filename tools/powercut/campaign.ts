/** The options that power cuts, disk states and disk errors have in common. */
import type { SavedMachine } from "./machine.ts";

export interface CampaignOptions {
  saved: SavedMachine;
  /** Number of cuts, states or errors. */
  count: number;
  seed: number;
  /** Directory for disk images, preferably in memory. */
  folder: string;
  report: (line: string) => void;
}

export const WRITERS = 8;
/** Tail size that triggers rotation and sealing, small enough that power cuts interrupt both. */
export const ROTATE_BYTES = 64 * 1024;
