/** What power cuts and disk states have in common. */
import type { FileSystem } from "./file_systems.ts";
import type { Images } from "./images.ts";

export interface CampaignOptions {
  images: Images;
  fileSystem: FileSystem;
  seed: number;
  /** Directory for disk images, preferably in memory. */
  folder: string;
  preload?: string | undefined;
  report: (line: string) => void;
}

export const WRITERS = 8;
