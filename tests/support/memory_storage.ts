/** The simulated disk under its former name. */
export { SimulatedDisk as MemoryStorage } from "./simulated_disk.ts";
