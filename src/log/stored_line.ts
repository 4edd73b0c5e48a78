export interface EventFilter {
  source?: string;
  stream?: string;
  recordKey?: string;
  kind?: string;
}
