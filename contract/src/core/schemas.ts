import Type, { type Static, type TOptional, type TProperties, type TSchema } from 'typebox'
import { bounds } from './limits.ts'

/** Allows `null` too, in the form of OpenAPI 3.0: an `enum` then contains null. */
export function Nullable<T extends TSchema>(schema: T) {
  const values = 'enum' in schema && Array.isArray(schema.enum) ? { enum: [...schema.enum, null] } : {}
  return Type.Unsafe<Static<T> | null>({ ...schema, ...values, nullable: true })
}

/** Type of a schema with a `default`. */
export interface HasDefault {
  default: unknown
}

/**
 * An optional member whose `default` is filled in by validation, so handlers always find it (`FilledQueryOf`). Throws
 * if the schema has no default.
 */
export function Defaulted<S extends TSchema>(schema: S): TOptional<S & HasDefault> {
  if (!Object.hasOwn(schema, 'default')) throw new Error(`a schema without a default: ${JSON.stringify(schema)}`)
  return Type.Optional(schema) as unknown as TOptional<S & HasDefault>
}

/** A string that is one of `values`. */
export function Choice<const T extends readonly string[]>(values: T, options: object = {}) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: [...values], ...options })
}

/**
 * Names a schema in the OpenAPI document: `#/components/schemas/<name>`. A recursive part refers to it by `x-ref`;
 * validation applies only the other keywords of that part.
 */
export function Named<T extends TSchema>(name: string, schema: T): T {
  return Object.assign(schema, { 'x-name': name })
}

/** A timestamp of a response: ISO 8601, UTC, milliseconds (decision D6). */
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601 in UTC with milliseconds.' })

/** A timestamp of a request: RFC 3339, a date alone, or without seconds; UTC if it has no offset (decision D6). */
export const TimestampInput = Type.String({
  format: 'timestamp',
  description: 'ISO 8601. A date alone means midnight; without an offset it is UTC.',
})

/** A timestamp in the future: keyword `x-future`. */
export const FutureInput = Type.String({
  format: 'timestamp',
  'x-future': true,
  description: 'ISO 8601, in the future.',
})

/** An object with any members. */
export const FreeObject = Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true })

/** Position in a list with offset paging (spec 2.10). */
export const OffsetPagination = Named(
  'OffsetPagination',
  Type.Object({
    total: Type.Integer({ minimum: 0, description: 'Number of all matches.' }),
    limit: Type.Integer({ minimum: 1 }),
    offset: Type.Integer({ minimum: 0 }),
    has_more: Type.Boolean(),
  }),
)

const nextCursor = Nullable(Type.String({ description: 'Value of `cursor` for the next page; null on the last page.' }))

/** Offset paging with a cursor for the next page. */ export const OffsetCursorPagination = Named(
  'OffsetCursorPagination',
  Type.Object({ ...OffsetPagination.properties, next_cursor: nextCursor }),
)

/** Position in a list with page paging (spec 2.10). */
export const PagePagination = Named(
  'PagePagination',
  Type.Object({
    page: Type.Integer({ minimum: 1 }),
    limit: Type.Integer({ minimum: 1 }),
    total: Type.Integer({ minimum: 0 }),
    pages: Type.Integer({ minimum: 0 }),
    has_next: Type.Boolean(),
    has_prev: Type.Boolean(),
  }),
)

/** Page paging with a cursor for the next page. */ export const PageCursorPagination = Named(
  'PageCursorPagination',
  Type.Object({ ...PagePagination.properties, next_cursor: nextCursor }),
)

export const offsetPaginationExample = { total: 1, limit: 20, offset: 0, has_more: false }
export const pagePaginationExample = { page: 1, limit: 20, total: 1, pages: 1, has_next: false, has_prev: false }

/** For a list that changes while a client pages through it. */
export const cursorParameter = {
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        '`next_cursor` of the previous page, with the same filters. New and removed entries do not shift the pages. Cannot be combined with `offset` or `page`.',
    }),
  ),
}

/** Query of a list with offset paging: `limit`, `offset` and `more`. */
export function offsetQuery<P extends TProperties>(
  more: P,
  limitMax: number = bounds.page_limit,
  limitDefault: number = bounds.page_limit_default,
) {
  return Type.Object({
    ...more,
    limit: Defaulted(
      Type.Integer({ minimum: 1, maximum: limitMax, default: limitDefault, description: 'Maximum number of entries.' }),
    ),
    offset: Defaulted(
      Type.Integer({
        minimum: 0,
        maximum: bounds.offset,
        default: 0,
        description: 'Number of entries to skip.',
      }),
    ),
  })
}

/** Query of a list with page paging: `page`, `limit` and `more`. */
export function pageQuery<P extends TProperties>(more: P) {
  return Type.Object({
    ...more,
    page: Defaulted(
      Type.Integer({ minimum: 1, maximum: bounds.offset, default: 1, description: 'Number of the page, from 1.' }),
    ),
    limit: Defaulted(
      Type.Integer({
        minimum: 1,
        maximum: bounds.page_limit,
        default: bounds.page_limit_default,
        description: 'Entries per page.',
      }),
    ),
  })
}

/** A response with a message and further members. */
export function Confirmation<P extends TProperties>(more: P) {
  return Type.Object({ message: Type.String(), ...more })
}

/** A name of 1 to `max` code points with a visible character and without control characters (decision D44). */
export function NameText(max: number, description: string) {
  return Type.String({
    minLength: 1,
    maxLength: max,
    pattern: '^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]*$',
    description: `${description} At least one visible character, no line breaks or other control characters.`,
  })
}

/** Limits the size of an object in bytes as JSON: keyword `x-max-json-bytes`. */
export function boundedJson(schema: TSchema, bytes: number): object {
  return { ...schema, 'x-max-json-bytes': bytes }
}

/** In paths: `proj_42` or `42` (decision D30). */
export const projectParameter = { description: 'The project: `proj_42` or `42`.', example: 'proj_42' }
export const agentParameter = { description: 'The agent.', example: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4' }

/** Header of a response with one resource (decision D99). */
export const revisionHeader = { ETag: 'Revision of the resource, for `If-Match`.' }
