/** Wire names that are reserved for the service or have a special meaning. */

/** Source of the events that the service itself appends. */
export const SYSTEM_SOURCE = "system";
/** Prefix of the service's own batch ids; clients must not use it. */
export const RESERVED_BATCH_PREFIX = "service/";

/** Stream that holds retirements, in the system source. */
export const SOURCE_LIFECYCLE_STREAM = "service.source_lifecycle";
export const SOURCE_RETIRED_KIND = "source_retired";

/** Every submitted event in this stream is a lineage marker. */
export const SOURCE_LINEAGE_STREAM = "service.source_lineage";
export const SOURCE_SUCCEEDED_KIND = "source_succeeded";
