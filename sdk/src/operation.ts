import { Call } from './call.ts'
import type { Operations } from './contract.ts'
import { CadreError } from './errors.ts'
import type { Content, Http, RequestOptions } from './http.ts'
import { List } from './pages.ts'
import type { PathIds } from './generated/path-ids.ts'
import type { TaskStream } from './task-stream.ts'
import type { Task } from './types.ts'

export type OperationId = keyof Operations
type Kind = 'call' | 'list' | 'url' | 'raw' | 'upload'
type Input = 'query' | 'body'

/** Everything that is needed to call an operation. The compiler and a test compare it with the contract. */
export interface Spec<Id extends OperationId = OperationId, K extends Kind = Kind> {
  id: Id
  kind: K
  method: Operations[Id]['method']
  path: Operations[Id]['path']
  /** Whether the argument after the ids is the query or the body. */
  input?: Input | undefined
  /** Of a list: the member with the entries. */
  member?: string
  isForm?: boolean
  isOnce?: boolean
}

/** `body` if an operation has one, else `query`, or nothing. */
type InputOf<Id extends OperationId> = [Operations[Id]['body']] extends [never]
  ? [Operations[Id]['query']] extends [never]
    ? []
    : ['query']
  : ['body']

type MethodOf<Id extends OperationId> = Operations[Id]['method']
type PathOf<Id extends OperationId> = Operations[Id]['path']
/** Members of a list's result that are arrays. */
type MemberOf<Result> = Exclude<
  { [Name in keyof Result]-?: Result[Name] extends readonly unknown[] ? Name : never }[keyof Result],
  undefined
>
type ListId = {
  [Id in OperationId]: Operations[Id]['result'] extends { pagination: unknown } ? Id : never
}[OperationId]

/** An operation with a JSON result. A POST is sent with an idempotency key, so it can be retried. */
export function call<Id extends OperationId>(
  id: Id,
  method: MethodOf<Id>,
  path: PathOf<Id>,
  ...[input]: InputOf<Id>
): Spec<Id, 'call'> {
  return { id, kind: 'call', method, path, input, isOnce: method === 'POST' }
}

/** A POST without idempotency, which the service would do twice. */
export function once<Id extends OperationId>(
  id: Id,
  method: MethodOf<Id>,
  path: PathOf<Id>,
  ...input: InputOf<Id>
): Spec<Id, 'call'> {
  return { ...call(id, method, path, ...input), isOnce: false }
}

/** A POST of OAuth, with a form as its body. */
export function form<Id extends OperationId>(
  id: Id,
  method: MethodOf<Id>,
  path: PathOf<Id>,
  ...input: InputOf<Id>
): Spec<Id, 'call'> {
  return { ...once(id, method, path, ...input), isForm: true }
}

/** A list in pages, with its entries in `member`. */
export function list<Id extends ListId>(
  id: Id,
  method: MethodOf<Id>,
  path: PathOf<Id>,
  member: MemberOf<Operations[Id]['result']>,
): Spec<Id, 'list'> {
  return { id, kind: 'list', method, path, input: 'query', member: String(member) }
}

/** A page for a browser: its method returns the URL. */
export function url<Id extends OperationId>(id: Id, method: MethodOf<Id>, path: PathOf<Id>): Spec<Id, 'url'> {
  return { id, kind: 'url', method, path, input: 'query' }
}

/** An operation whose result is not JSON: its method returns the unread response. */
export function raw<Id extends OperationId>(
  id: Id,
  method: MethodOf<Id>,
  path: PathOf<Id>,
  ...[input]: InputOf<Id>
): Spec<Id, 'raw'> {
  return { id, kind: 'raw', method, path, input }
}

/** A POST with content, which is the argument before the query. It is retried unless the content is a stream. */
export function upload<Id extends OperationId>(id: Id, method: MethodOf<Id>, path: PathOf<Id>): Spec<Id, 'upload'> {
  return { id, kind: 'upload', method, path, input: 'query', isOnce: true }
}

type IdsOf<Path extends string> = Path extends `${string}{${infer Name extends keyof PathIds}}${infer Rest}`
  ? [...PathIds[Name], ...IdsOf<Rest>]
  : []

type Arguments<O extends Operations[OperationId], Options> = [O['body']] extends [never]
  ? [O['query']] extends [never]
    ? [options?: Options]
    : {} extends O['query']
      ? [query?: O['query'], options?: Options]
      : [query: O['query'], options?: Options]
  : O['body_optional'] extends true
    ? [body?: O['body'], options?: Options & QueryOption<O>]
    : [body: O['body'], options?: Options & QueryOption<O>]

/** If an operation has a body, its query is an option. */
type QueryOption<O extends Operations[OperationId]> = [O['query']] extends [never] ? unknown : { query?: O['query'] }

type ItemOf<Result> = Result[MemberOf<Result>] extends readonly (infer Item)[] ? Item : never

type Returned<O extends Operations[OperationId], K extends Kind> = {
  call: Call<O['result']>
  list: List<ItemOf<O['result']>, O['result']>
  url: string
  raw: Promise<Response>
  upload: Call<O['result']>
}[K]

/** The method of an operation. Its arguments are the ids of its path, its query or body, and options. */
export type Method<S> =
  S extends Spec<infer Id, infer K>
    ? Typed<
        [
          ...IdsOf<PathOf<Id>>,
          ...(K extends 'upload' ? [content: Content] : []),
          ...Arguments<Operations[Id], RequestOptions>,
        ],
        Returned<Operations[Id], K>
      >
    : never

/** A method. One that returns tasks has a type parameter for `data` of their output, as in `tasks.get<Invoice>(…)`. */
export type Typed<Given extends unknown[], R> = [R] extends [Call<Task>]
  ? <Data = unknown>(...given: Given) => Call<Task<Data>>
  : [R] extends [List<Task, infer Body>]
    ? <Data = unknown>(...given: Given) => List<Task<Data>, Body>
    : [R] extends [TaskStream]
      ? <Data = unknown>(...given: Given) => TaskStream<Data>
      : [R] extends [Promise<Task>]
        ? <Data = unknown>(...given: Given) => Promise<Task<Data>>
        : (...given: Given) => R

/** Methods of operations. */
export type Bound<Specs> = { readonly [Name in keyof Specs]: Method<Specs[Name]> }

/** Makes the methods of a resource. */
export function bind<const Specs extends Record<string, Spec>>(http: Http, specs: Specs): Bound<Specs> {
  const methods = Object.entries(specs).map(([name, spec]) => [name, method(http, spec)])
  return Object.fromEntries(methods) as Bound<Specs>
}

function method(http: Http, spec: Spec): (...given: unknown[]) => unknown {
  const ids = spec.path.match(/\{\w+\}/g)?.length ?? 0
  return (...given) => {
    const path = fillPath(spec.path, given.slice(0, ids) as (string | number | undefined)[])
    const content = spec.kind === 'upload' ? (given[ids] as Content | undefined) : undefined
    const after = spec.kind === 'upload' ? ids + 1 : ids
    const input = spec.input ? (given[after] as object | undefined) : undefined
    const options = (given[spec.input ? after + 1 : after] ?? {}) as RequestOptions & { query?: object }
    const { member, isForm = false, isOnce = false } = spec
    const query = spec.input === 'query' ? input : options.query
    const body = spec.input === 'body' ? input : undefined
    const request = { method: spec.method, path, query, body, isForm, isOnce }
    switch (spec.kind) {
      case 'url':
        return http.url(path, query)
      case 'raw':
        return http.open({ ...request, accept: '*/*' }, options)
      case 'list':
        return new List((at) => http.json({ ...request, query: { ...query, ...placeOf(at) } }, options), member ?? '')
      case 'call':
        return new Call(http.json(request, options))
      case 'upload':
        return new Call(http.json({ ...request, content }, options))
    }
  }
}

/** The start of a page as query parameters. A cursor replaces the caller's offset or page. */
function placeOf(at: Record<string, unknown>): Record<string, unknown> {
  return at.cursor === undefined ? at : { offset: undefined, page: undefined, ...at }
}

/** Fills ids into a path; throws for an id that would change the path. */
export function fillPath(path: string, ids: readonly (string | number | undefined)[]): string {
  let index = 0
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const id = String(ids[index++] ?? '')
    if (['', '.', '..'].includes(id)) throw new CadreError(`${name} must be an id, not ${JSON.stringify(id)}.`)
    return encodeURIComponent(id)
  })
}

type InProject<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends (
    project_id: string | number,
    ...given: infer Given
  ) => infer R
    ? Typed<Given, R>
    : never
}

/** Binds the first argument of methods, the project. */
export function inProject<Methods extends object>(project_id: string | number, methods: Methods): InProject<Methods> {
  const bound = Object.entries(methods as Record<string, (...given: unknown[]) => unknown>).map(([name, method]) => [
    name,
    (...given: unknown[]) => method(project_id, ...given),
  ])
  return Object.fromEntries(bound) as InProject<Methods>
}
