import type { Static, TObject, TSchema } from 'typebox'
import type { DoorErrorFormat } from './doors.ts'
import type { BucketName } from './limits.ts'
import type { ProblemKind } from './problems.ts'
import type { HasDefault } from './schemas.ts'
import type { Requirement } from './scopes.ts'

/**
 * The form of an operation's errors, by name; its identifiers and lists follow it (decision D2). `agents` is family A of the
 * specification: string identifiers, offset paging, lowercase codes. `control` is family B: integer project identifiers, page
 * paging, uppercase codes. `oauth` is that of RFC 6749, `page` serves people and probes, and a protocol has the form of its
 * clients. `server/src/http/error-formats.ts` renders each.
 */
export type ErrorFormat = 'agents' | 'control' | 'oauth' | 'page' | DoorErrorFormat

export type CredentialKind = 'api_key' | 'token' | 'session' | 'lease'

/** Every kind of credential of a person: what most operations accept. A lease is a worker's, for one task alone. */
export const anyCredential: readonly CredentialKind[] = ['api_key', 'token', 'session']

/** An answer that an operation gives when it succeeds. */
export interface OperationResponse {
  status: number
  description: string
  /** Undefined for answers that are not JSON; then `media_type` says what they are. */
  schema?: TSchema
  example?: unknown
  media_type?: string
  /** Headers beyond those of every answer, with their meaning. */
  headers?: Record<string, string>
}

/** A request that the service sends after an operation, to an address that it was given. */
export interface OperationCallback {
  /** Where it goes: an expression of OpenAPI, such as `{$request.body#/url}`. */
  url: string
  /** `verbNoun`. */
  id: string
  summary: string
  description: string
  headers: Record<string, { description: string; example: string }>
  body: TSchema
  example: unknown
  /** What the answers mean, by status. */
  responses: Record<string, string>
}

/** What a path parameter names; the loop tests know from it how to make one. */
export interface PathParameter {
  description: string
  example: string
}

/** One operation of the API as data: routing, validation, access, limits, document and tests are made from it. */
export interface Operation<Query extends TObject = TObject, Body extends TObject = TObject> {
  /** `verbNoun`, the OpenAPI operationId. */
  id: string
  /** The words after `cadre` that call it, as in `tasks create`. */
  command?: string
  /** Why the command line does not call it; every operation has this or `command`. */
  without_command?: string
  /** Its method on the client of the SDK, as in `tasks.create`. `npm run gen` writes `sdk/src/generated/resources.ts` from it. */
  sdk?: string
  /** Of one that changes something: the action that it leaves in the audit log (`auditActions`). */
  audit?: string
  /** Why it leaves none, where it changes something. */
  unaudited?: string
  /** A sentence for the method's documentation, after the summary. */
  sdk_note?: string
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The whole path with `{parameters}`: `/api/v1/projects/{project_id}/agents`. */
  path: string
  error_format: ErrorFormat
  tag: string
  summary: string
  description: string
  /** Empty: public. */
  credentials: readonly CredentialKind[]
  /** What is asked of the credential's scopes; null for any valid credential. */
  scope: Requirement | null
  /** Asks for more than the scope says: the role of an owner or administrator (decision D75). */
  administrators?: boolean
  /** Where requests are counted; null where they are not. */
  bucket: BucketName | null
  params?: Record<string, PathParameter>
  query?: Query
  body?: Body
  /** Bodies that are read as they come, by media type, instead of `body`: each with its schema in the document. */
  upload?: Record<string, TSchema>
  /** What other systems post in another form, which nothing here checks: a sentence for the document. */
  foreign_body?: string
  /** Bytes of a body at most, where `bounds.body_bytes` are not enough. */
  body_bytes?: number
  /** A body that works as it stands. */
  body_example?: unknown
  /** Where true, a request without a body is as good as `{}`. */
  body_optional?: boolean
  /** The first is the usual one. */
  responses: readonly OperationResponse[]
  /** What can go wrong beyond what every operation of its kind shares (see `problemsOf`). */
  problems: readonly ProblemKind[]
  /** False for POSTs that ignore Idempotency-Key (decision D98). */
  idempotent?: boolean
  /** Whether `If-Match` is honoured and `ETag` given (decision D99). */
  revisioned?: boolean
  /** What the service does later because of it, by name. */
  callbacks?: Record<string, OperationCallback>
  /** Concerns the user alone: served, to a cookie session, also where its user belongs to no organization. */
  personal?: boolean
  /** Other systems call it by separate rules: query parameters and members that it does not know are ignored. */
  tolerant?: boolean
  /** Not part of the specification: an extension that callers may use. */
  extension?: boolean
}

/**
 * Keeps an operation's exact types: path, query, body and responses as written, for the code that serves or calls it. A
 * member that operations do not have is a type error.
 */
export function defineOperation<const O extends Operation>(
  operation: O & { [Member in Exclude<keyof O, keyof Operation>]: never },
): O {
  return operation
}

export type QueryOf<O> = O extends { query: infer Query extends TObject } ? Static<Query> : never
/** A query after validation: members with a default (`Defaulted`) are always there. */
export type FilledQueryOf<O> = O extends { query: TObject<infer Members> }
  ? QueryOf<O> & {
      [Name in keyof Members as Members[Name] extends HasDefault ? Name : never]-?: Static<Members[Name]>
    }
  : never
export type BodyOf<O> = O extends { body: infer Body extends TObject } ? Static<Body> : never

/** Whether a POST honours `Idempotency-Key`. */
export function isIdempotent(operation: Operation): boolean {
  return operation.method === 'POST' && operation.idempotent !== false && operation.credentials.length > 0
}

/** Everything that can go wrong with an operation: what its kind shares, and what it adds. */
export function problemsOf(operation: Operation): ProblemKind[] {
  const kinds = new Set<ProblemKind>(operation.problems)
  if (operation.credentials.length > 0) {
    kinds.add('unauthorized')
    if (operation.path.startsWith('/api/v1/auth/')) {
      // Who it is is asked before whether their kind of credential will do.
      kinds.add('invalid_api_key').add('invalid_token').add('expired_token')
    }
    kinds.add('insufficient_permissions')
  }
  if (operation.scope) kinds.add('insufficient_scope')
  if (operation.bucket) kinds.add('rate_limit_exceeded')
  // A path, a query or a body can be malformed; so can the header of an organization or an idempotency key.
  if (operation.query || operation.body || operation.credentials.length > 0) kinds.add('validation_error')
  // A parameter that it does not know (decision D14).
  if (operation.tolerant !== true) {
    if (operation.error_format === 'control') kinds.add('invalid_query')
    if (operation.error_format === 'agents') kinds.add('validation_error')
  }
  if (operation.body) kinds.add('invalid_json')
  if (isIdempotent(operation)) kinds.add('idempotency_key_reused').add('request_in_progress')
  if (operation.revisioned && operation.method !== 'GET') kinds.add('precondition_failed')
  // A body too large, or a cookie's X-Organization-ID that names nothing.
  if (operation.credentials.includes('session')) kinds.add('organization_not_found')
  kinds.add('internal_error').add('service_unavailable')
  return [...kinds]
}
