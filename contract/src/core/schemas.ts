import Type, { type Static, type TOptional, type TProperties, type TSchema } from 'typebox'
import { bounds } from './limits.ts'

/** A schema that also takes `null`, in the form of OpenAPI 3.0: where values are listed, null is one of them. */
export function Nullable<T extends TSchema>(schema: T) {
  const values = 'enum' in schema && Array.isArray(schema.enum) ? { enum: [...schema.enum, null] } : {}
  return Type.Unsafe<Static<T> | null>({ ...schema, ...values, nullable: true })
}

/** Marks schemas with a `default`, in types. */
export interface HasDefault {
  default: unknown
}

/**
 * An optional member whose `default` validation fills in: who serves an operation finds it always (`FilledQueryOf`). Throws
 * where the schema has none.
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
 * A schema with a name in the OpenAPI document: `#/components/schemas/<name>`. A part of it that has the schema again says so by `x-ref`,
 * its name, and checks no more than its own keywords.
 */
export function Named<T extends TSchema>(name: string, schema: T): T {
  return Object.assign(schema, { 'x-name': name })
}

/** A moment as the service writes it: ISO 8601, UTC, milliseconds (decision D6). */
export const Timestamp = Type.String({ format: 'date-time', description: 'ISO 8601 in UTC with milliseconds.' })

/** A moment as callers may write it: RFC 3339, a date alone, or without seconds; UTC where no offset is given (decision D6). */
export const TimestampInput = Type.String({
  format: 'timestamp',
  description: 'ISO 8601. A date alone means midnight; without an offset it is UTC.',
})

/** A moment that has not come yet: keyword `x-future`. */
export const FutureInput = Type.String({
  format: 'timestamp',
  'x-future': true,
  description: 'ISO 8601, in the future.',
})

/** Free-form members. */
export const FreeObject = Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true })

/** Where a list of family A stands (spec 2.10). */
export const OffsetPagination = Named(
  'OffsetPagination',
  Type.Object({
    total: Type.Integer({ minimum: 0, description: 'All matches.' }),
    limit: Type.Integer({ minimum: 1 }),
    offset: Type.Integer({ minimum: 0 }),
    has_more: Type.Boolean(),
  }),
)

const nextCursor = Nullable(Type.String({ description: 'For `cursor`: the page after this one; null after the last.' }))

/** The same of a list that goes on by a cursor as well. */
export const OffsetCursorPagination = Named(
  'OffsetCursorPagination',
  Type.Object({ ...OffsetPagination.properties, next_cursor: nextCursor }),
)

/** Where a list of family B stands (spec 2.10). */
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

/** The same of a list that goes on by a cursor as well. */
export const PageCursorPagination = Named(
  'PageCursorPagination',
  Type.Object({ ...PagePagination.properties, next_cursor: nextCursor }),
)

export const offsetPaginationExample = { total: 1, limit: 20, offset: 0, has_more: false }
export const pagePaginationExample = { page: 1, limit: 20, total: 1, pages: 1, has_next: false, has_prev: false }

/** Of a list whose entries come and go while it is read. */
export const cursorParameter = {
  cursor: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'Go on after the page with this `next_cursor`, with the same filters. What came or went meanwhile moves no entry to another page. Not together with `offset` or `page`.',
    }),
  ),
}

/** `limit` and `offset` of a list of family A. */
export function offsetQuery<P extends TProperties>(
  more: P,
  limitMax: number = bounds.page_limit,
  limitDefault: number = bounds.page_limit_default,
) {
  return Type.Object({
    ...more,
    limit: Defaulted(
      Type.Integer({ minimum: 1, maximum: limitMax, default: limitDefault, description: 'How many at most.' }),
    ),
    offset: Defaulted(
      Type.Integer({
        minimum: 0,
        maximum: bounds.offset,
        default: 0,
        description: 'How many to leave out at the start.',
      }),
    ),
  })
}

/** `page` and `limit` of a list of family B. */
export function pageQuery<P extends TProperties>(more: P) {
  return Type.Object({
    ...more,
    page: Defaulted(
      Type.Integer({ minimum: 1, maximum: bounds.offset, default: 1, description: 'Which page, from 1.' }),
    ),
    limit: Defaulted(
      Type.Integer({
        minimum: 1,
        maximum: bounds.page_limit,
        default: bounds.page_limit_default,
        description: 'How many a page.',
      }),
    ),
  })
}

/** A confirmation in words, with further members. */
export function Confirmation<P extends TProperties>(more: P) {
  return Type.Object({ message: Type.String(), ...more })
}

/** A name of 1 to `max` code points with something to see in it and no control characters (decision D44). */
export function NameText(max: number, description: string) {
  return Type.String({
    minLength: 1,
    maxLength: max,
    pattern: '^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]*$',
    description: `${description} At least one visible character, no line breaks or other control characters.`,
  })
}

/** An object bounded in bytes as JSON: keyword `x-max-json-bytes`. */
export function boundedJson(schema: TSchema, bytes: number): object {
  return { ...schema, 'x-max-json-bytes': bytes }
}

/** In paths: `proj_42` or `42` (decision D30). */
export const projectParameter = { description: 'The project: `proj_42` or `42`.', example: 'proj_42' }
export const agentParameter = { description: 'The agent.', example: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4' }

/** The header of an answer that tells of one resource in a revision (decision D99). */
export const revisionHeader = { ETag: 'The revision, for `If-Match`.' }
