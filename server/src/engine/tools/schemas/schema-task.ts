/** A task for the schema worker: to check a schema, or a value by a schema. */
export type SchemaTask = { schema: unknown } | { schema: unknown; value: unknown }

/** The verdict about a schema; both members are undefined for a good one. */
export interface SchemaVerdict {
  /** The error, in the form of `schemaError`. */
  fault: string | undefined
  /** The slow pattern, in the form of `slowPattern`; undefined too if the schema cannot be used. */
  slow: string | undefined
}

/** The verdict about a value; `late` if the check took too long. */
export type ValueVerdict =
  | { outcome: 'valid' }
  | { outcome: 'late' }
  | { outcome: 'invalid'; path: string; message: string }
  | { fault: string }
