import type { Operation } from '#contract/core/operation.ts'
import { countSubject } from './access/rate-limit.ts'
import { authorizeRole, authorizeScope } from './access/authorize.ts'
import { Answer, type Handlers, type Handling, type Loading } from './handling.ts'
import type { HttpContext } from './http-context.ts'
import { validate, withoutNulls } from './read-request.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- schemas of query and body vary with the operation
type AnyOperation = Operation<any, any>
// oxlint-disable-next-line typescript/no-explicit-any -- the loaded type varies with the operation
type AnyHandlers = Handlers<any, any>

const registered = new WeakMap<HttpContext, Map<string, { operation: AnyOperation; handlers: AnyHandlers }>>()

/** Records the handlers of an operation, so that `invoke` can call them. */
export function register(http: HttpContext, operation: AnyOperation, handlers: AnyHandlers): void {
  const all = registered.get(http) ?? new Map()
  registered.set(http, all.set(operation.id, { operation, handlers }))
}

/**
 * Runs an operation of the API for a request of another protocol, with the same checks of scope, role, rate limit and
 * fields, and the same audit records. Returns the body of the response. `query` has text values, as in a URL.
 */
export async function invoke(
  http: HttpContext,
  id: string,
  loading: Loading,
  given: { params: Record<string, string>; query?: Record<string, string>; body?: Record<string, unknown> },
): Promise<unknown> {
  const found = registered.get(http)?.get(id)
  if (!found) throw new Error(`the operation ${id} is not registered`)
  const { operation, handlers } = found
  const { principal } = loading
  authorizeScope(operation, principal)
  const { sql, rates } = http.authentication
  if (operation.bucket !== null) await countSubject(sql, rates, operation.bucket, principal.subject)
  // Response headers belong to the outer request.
  const here: Loading = { ...loading, params: given.params, header: () => undefined }
  const loaded = await handlers.load?.(here)
  authorizeRole(operation, principal)
  const body = given.body && operation.method === 'POST' ? withoutNulls(operation.body, given.body) : given.body
  const valid = validate(operation, { query: given.query ?? {}, unknown: [], body })
  const handling = { ...here, loaded, ...valid } as Handling<AnyOperation, unknown>
  const result = await handlers.run(handling)
  return result instanceof Answer ? result.body : result
}
