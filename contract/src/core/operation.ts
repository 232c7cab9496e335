import type { Static, TObject, TSchema } from 'typebox'
import type { DoorErrorFormat } from './doors.ts'
import type { BucketName } from './limits.ts'
import type { ProblemKind } from './problems.ts'
import type { HasDefault } from './schemas.ts'
import type { Requirement } from './scopes.ts'

/**
 * Format of an operation's errors; it also decides the form of identifiers and lists (decision D2). `agents` is
 * family A of the specification: string identifiers, offset paging, lowercase codes. `control` is family B: integer
 * project identifiers, page paging, uppercase codes. `oauth` follows RFC 6749, `page` is for people and probes, and
 * each foreign protocol has its own formats. `server/src/http/error-formats.ts` renders them.
 */
export type ErrorFormat = 'agents' | 'control' | 'oauth' | 'page' | DoorErrorFormat

export type CredentialKind = 'api_key' | 'token' | 'session' | 'lease'

/** The credentials that most operations accept. A lease belongs to a remote worker and is valid for one task. */
export const anyCredential: readonly CredentialKind[] = ['api_key', 'token', 'session']

/** A successful response of an operation. */
export interface OperationResponse {
  status: number
  description: string
  /** Undefined if the response is not JSON; then `media_type` is set. */
  schema?: TSchema
  example?: unknown
  media_type?: string
  /** Descriptions of the headers that not every response has. */
  headers?: Record<string, string>
}

/** A request that the service sends because of an operation, to a URL that the caller gave. */
export interface OperationCallback {
  /** OpenAPI expression for the URL, such as `{$request.body#/url}`. */
  url: string
  /** `verbNoun`. */
  id: string
  summary: string
  description: string
  headers: Record<string, { description: string; example: string }>
  body: TSchema
  example: unknown
  /** What the receiver's responses mean, by status. */
  responses: Record<string, string>
}

/** A path parameter. Tests over all operations replace the example by the id of an existing resource. */
export interface PathParameter {
  description: string
  example: string
}

/**
 * One operation of the API as data: routing, validation, access, limits, the OpenAPI document and tests are made from
 * it.
 */
export interface Operation<Query extends TObject = TObject, Body extends TObject = TObject> {
  /** `verbNoun`, the OpenAPI operationId. */
  id: string
  /** Its command without `cadre`, such as `tasks create`. */
  command?: string
  /** Why there is no command. Every operation has this or `command`. */
  without_command?: string
  /**
   * Its method on the SDK's client, such as `tasks.create`. `npm run gen` writes `sdk/src/generated/resources.ts`
   * from it.
   */
  sdk?: string
  /** For an operation that changes something: its action in the audit log (`auditActions`). */
  audit?: string
  /** Why an operation that changes something is not in the audit log. */
  unaudited?: string
  /** Sentence after the summary in the documentation of the SDK's method. */
  sdk_note?: string
  /**
   * Whether a request waits for an equal one that still runs under its Idempotency-Key. Without this it gets
   * `request_in_progress`.
   */
  awaits_key?: true
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** The whole path with `{parameters}`: `/api/v1/projects/{project_id}/agents`. */
  path: string
  error_format: ErrorFormat
  tag: string
  summary: string
  description: string
  /** Empty for a public operation. */
  credentials: readonly CredentialKind[]
  /** The scope that the credential needs; null for any valid credential. */
  scope: Requirement | null
  /** Whether the user must also be an owner or admin (decision D75). */
  administrators?: boolean
  /** The rate limit that counts its requests; null for none. */
  bucket: BucketName | null
  params?: Record<string, PathParameter>
  query?: Query
  body?: Body
  /** Streamed bodies instead of `body`: their schemas in the OpenAPI document, by media type. */
  upload?: Record<string, TSchema>
  /** For a body that other systems define and that validation skips: its description in the OpenAPI document. */
  foreign_body?: string
  /** Maximum size of the body in bytes. Default: `bounds.body_bytes`. */
  body_bytes?: number
  /** A body with which the operation succeeds. */
  body_example?: unknown
  /** Whether a request without a body counts as `{}`. */
  body_optional?: boolean
  /** The usual response comes first. */
  responses: readonly OperationResponse[]
  /** Problems beyond those that `problemsOf` adds for operations of its kind. */
  problems: readonly ProblemKind[]
  /** False for POSTs that ignore Idempotency-Key (decision D98). */
  idempotent?: boolean
  /** Whether it honors `If-Match` and returns `ETag` (decision D99). */
  revisioned?: boolean
  /** Requests that the service sends later because of it, by name. */
  callbacks?: Record<string, OperationCallback>
  /**
   * Whether it concerns only the user: a cookie session may then call it even if the user belongs to no organization.
   */
  personal?: boolean
  /** Whether unknown query parameters and members are ignored, because other systems define the request. */
  tolerant?: boolean
  /** Whether it is an extension that the specification does not contain. */
  extension?: boolean
}

/**
 * Returns `operation` with its literal types, so that code which serves or calls it knows its path, query, body and
 * responses. An unknown member is a type error.
 */
export function defineOperation<const O extends Operation>(
  operation: O & { [Member in Exclude<keyof O, keyof Operation>]: never },
): O {
  return operation
}

export type QueryOf<O> = O extends { query: infer Query extends TObject } ? Static<Query> : never
/** A query after validation: members with a default (`Defaulted`) are always present. */
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

/** All problems of an operation: its own, and those of its kind. */
export function problemsOf(operation: Operation): ProblemKind[] {
  const kinds = new Set<ProblemKind>(operation.problems)
  if (operation.credentials.length > 0) {
    kinds.add('unauthorized')
    if (operation.path.startsWith('/api/v1/auth/')) {
      // A credential is checked before its kind is refused.
      kinds.add('invalid_api_key').add('invalid_token').add('expired_token')
    }
    kinds.add('insufficient_permissions')
  }
  if (operation.scope) kinds.add('insufficient_scope')
  if (operation.bucket) kinds.add('rate_limit_exceeded')
  // Path, query, body, X-Organization-ID or Idempotency-Key can be malformed.
  if (operation.query || operation.body || operation.credentials.length > 0) kinds.add('validation_error')
  // An unknown query parameter (decision D14).
  if (operation.tolerant !== true) {
    if (operation.error_format === 'control') kinds.add('invalid_query')
    if (operation.error_format === 'agents') kinds.add('validation_error')
  }
  if (operation.body) kinds.add('invalid_json')
  if (isIdempotent(operation)) kinds.add('idempotency_key_reused').add('request_in_progress')
  if (operation.revisioned && operation.method !== 'GET') kinds.add('precondition_failed')
  // X-Organization-ID of a cookie session can name an unknown organization.
  if (operation.credentials.includes('session')) kinds.add('organization_not_found')
  kinds.add('internal_error').add('service_unavailable')
  return [...kinds]
}
