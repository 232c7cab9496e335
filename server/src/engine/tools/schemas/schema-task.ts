/** What the thread is asked: whether a schema can be used, or what is wrong with a value by one. */
export type SchemaTask = { schema: unknown } | { schema: unknown; value: unknown }

/** Words about a schema; undefined where nothing is wrong. */
export interface SchemaVerdict {
  /** As `schemaError` says it. */
  fault: string | undefined
  /** As `slowPattern` says it; undefined too where the schema cannot be used. */
  slow: string | undefined
}

/** What is wrong with a value: `late` where that took too long to find out. */
export type ValueVerdict =
  | { outcome: 'valid' }
  | { outcome: 'late' }
  | { outcome: 'invalid'; path: string; message: string }
  | { fault: string }
