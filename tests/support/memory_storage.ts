/** The simulated disk under its former name. */
export * from "./simulated_disk.ts";
export { SimulatedDisk as MemoryStorage, simulatedFile as memoryFile } from "./simulated_disk.ts";
