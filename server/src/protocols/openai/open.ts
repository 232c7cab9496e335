import { isObject } from '#contract/core/merge-patch.ts'
import { Problem } from '#contract/core/problems.ts'
import { projectId } from '#contract/core/project-id.ts'
import type { Context } from '../../context.ts'
import { saidOf } from '../../engine/conversation/conversation.ts'
import { judgeInput } from '../../engine/tools/schemas/schema-judge.ts'
import type { Loading } from '../../http/handle.ts'
import { recordMaking, type FreshTask } from '../../events/streams/streams.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { makeLoadAsked, type AskedAgent } from '../../resources/tasks/asked-agents.ts'
import type { AskedRequest } from '../../engine/commands/repeated-requests.queries.ts'
import { claimRequest, hashOfRequest, recordRequest, type RequestRecord } from '../door-requests.queries.ts'
import type { FoundResponse } from '../door-responses.queries.ts'
import { foundOf, openSegment, plainTask, type AskedSegment, type SegmentPointer } from '../open-segment.ts'
import { makeSourceOf, RequestEnds, type SourceOf } from '../served-segment.ts'
import { requireConversation } from '../conversations.queries.ts'
import { makeDoorFiles, type DoorFiles } from '../door-files.ts'
import { findModel, makeFindModel, opensDoor, type FindModel, type FoundModel } from './models.queries.ts'
import { projectOf } from './models.ts'
import { badParameter, modelNotFound } from './problems.ts'
import { readInput, type AskedInput } from './read-input.ts'
import type { Options } from './read-options.ts'

/** Result of a creating request: its segment, and its record for retries. */
export interface Opened extends SegmentPointer {
  record: RequestRecord | null
  /** The new segment, if this request created it. */
  made?: FoundResponse
  /** Events since the creation. Call `take` once, and watch the task from then on; call `forget` otherwise. */
  fresh?: { take: FreshTask['take']; forget: () => void }
}

/** Answers a request from its opened segment, and releases the recorded events of a new task at the end. */
export async function finishOpened<Result>(
  opened: Opened,
  finish: (opened: Opened) => Promise<Result>,
): Promise<Result> {
  try {
    return await finish(opened)
  } finally {
    opened.fresh?.forget()
  }
}

/** Lookup of the agents of requests. */
export interface AskedModels {
  loadAsked: (loading: Loading, repeated?: AskedRequest) => Promise<AskedAgent>
  findModel: FindModel
  known: KnownModels
}

/** Shared parts of Chat Completions and Responses, so that their lookups are batched together. */
export interface OpenAiDoor extends Context {
  models: AskedModels
  doorFiles: DoorFiles
  sourceOf: SourceOf
  ends: RequestEnds
}

export function makeOpenAiDoor(context: Context): OpenAiDoor {
  const { indexed } = context.database
  return {
    ...context,
    models: { loadAsked: makeLoadAsked(context.database), findModel: makeFindModel(indexed), known: new Map() },
    doorFiles: makeDoorFiles(context),
    sourceOf: makeSourceOf(context),
    ends: new RequestEnds({ sql: indexed, log: context.log }),
  }
}

/**
 * The last agent of each model name, by organization, project and name. Only a hint: the agent is used if it still
 * has the same names.
 */
export type KnownModels = Map<string, FoundModel>

/** Maximum number of remembered names; the oldest is dropped. */
const knownModelsMax = 10_000

/**
 * The agent that a body names as its model. With `repeated`, the same statement also looks for an earlier equal
 * request. Throws 404 `model_not_found`, or 400 if `model` is missing.
 */
export async function requireModel(
  loading: Loading,
  model: unknown,
  { loadAsked, findModel: findShared, known }: AskedModels,
  repeated?: AskedRequest,
): Promise<AskedAgent> {
  if (typeof model !== 'string' || model === '')
    throw badParameter('model', 'model is required.', 'missing_required_parameter')
  const { sql, principal } = loading
  const project = projectOf(loading)
  const load = ({ project_id, id }: FoundModel): Promise<AskedAgent> =>
    loadAsked({ ...loading, params: { project_id: projectId(project_id), agent_id: id } }, repeated)
  const place = JSON.stringify([principal.org_id, project ?? null, model])
  const last = known.get(place)
  if (last) {
    const agent = await load(last).catch(unlessMissing)
    const isSame = agent?.name === last.name && agent.project_name === last.project && opensDoor(agent.config)
    if (isSame) return agent
    known.delete(place)
  }
  const found = await (sql.isTransaction
    ? findModel(sql, principal, model, project)
    : findShared(principal, model, project))
  if (!found) throw modelNotFound(model)
  if (found.isLasting) {
    if (known.size >= knownModelsMax) known.delete(known.keys().next().value!)
    known.set(place, found)
  }
  return load(found)
}

function unlessMissing(error: unknown): undefined {
  if (!(error instanceof Problem) || error.status !== 404) throw error
}

/**
 * Opens the segment of a request exactly once, also if the client repeats it without a key after a broken connection.
 * For a request with an Idempotency-Key, only the key detects a repetition.
 */
export async function openOnce(
  { engine, database, ends }: Pick<OpenAiDoor, 'engine' | 'database' | 'ends'>,
  loading: Loading,
  asked: (request?: AskedRequest) => Promise<AskedSegment>,
): Promise<Opened> {
  const { sql, principal, request } = loading
  const segment = (tx: Sql, of: AskedSegment): Promise<SegmentPointer> =>
    openSegment(tx, { engine }, { ...loading, sql: tx }, of)
  const judged = async (of: AskedSegment): Promise<AskedSegment> => {
    const said = of.input.messages.findLast(({ role }) => role === 'user')
    if (said) await judgeInput(of.agent.config, saidOf(said.content).content, { ...of.agent, ...loading.principal })
    return of
  }
  if (sql.isTransaction) return { ...(await segment(sql, await judged(await asked()))), record: null }
  const { credential_id } = principal
  const process_id = engine.worker_id
  const path = request.url.split('?', 1)[0] ?? request.url
  const hash = hashOfRequest(request.method, path, request.body as Buffer | undefined)
  const again = Number(request.headers['x-stainless-retry-count'] ?? 0) >= 1
  await (again ? ends.flush() : ends.written())
  const equal = { credential_id, hash, again }
  // A retry of an earlier request is answered even if this request is invalid now, for example because its agent was
  // deleted.
  const [read] = await Promise.allSettled([asked(equal)])
  const mayClaim = read.status === 'rejected' || read.value.agent.is_repeated !== false
  const claimed = mayClaim && (await claimRequest(database.indexed, { ...equal, process_id }))
  if (claimed) return claimed
  if (read.status === 'rejected') throw read.reason
  const of = await judged(read.value)
  const task = plainTask(loading, of, { credential_id, hash, process_id })
  if (task && engine.mayShare(task)) {
    const { row, take, end: forget } = await recordMaking(engine.hub, task.id, () => engine.create(task))
    const made = foundOf(row, task)
    const record = row.request_record == null ? null : { credential_id, hash, id: row.request_record }
    return { response_id: made.id, task_id: row.id, record, made, fresh: { take, forget } }
  }
  return sql.begin(async (tx) => {
    const opened = await segment(tx, of)
    return { ...opened, record: await recordRequest(tx, { ...opened, credential_id, hash, process_id }) }
  })
}

/** Member names in bodies with files; a cheap check before the body is parsed again. */
const marks = ['image_url', 'file_data', 'file_url'].map((mark) => Buffer.from(mark))

/** Stores the files of a request, or of the conversation that it continues, in the agent's project. */
export async function receiveAsked(
  doorFiles: DoorFiles,
  loading: Loading,
  models: AskedModels,
  read: () => { body: Record<string, unknown>; input: AskedInput; conversation?: string | undefined },
): ReturnType<DoorFiles['receive']> {
  const { request, principal, sql } = loading
  const body = request.body as Buffer | undefined
  if (!body || ![...marks, Buffer.from('conversation')].some((mark) => body.includes(mark))) return undefined
  const asked = read()
  const kept =
    asked.conversation === undefined ? [] : (await requireConversation(sql, asked.conversation, principal)).items
  const urls = [...readInput(kept, 'items').urls, ...asked.input.urls]
  if (urls.length === 0) return undefined
  const { project_id } = await requireModel(loading, asked.body['model'], models)
  return doorFiles.receive(request, { project_id, created_by: principal.user_id }, urls)
}

/** The parts of a request that its response shows again. */
export function echoOf(body: Record<string, unknown>, options: Options, agent: AskedAgent): Record<string, unknown> {
  const { caller } = options
  const { metadata, tool_choice, text, safety_identifier, prompt_cache_key, user, service_tier } = body
  const { client_metadata } = options.metadata
  const temperature = caller.temperature ?? agent.config['temperature']
  const effort = caller.effort ?? agent.config['effort']
  const tools = Array.isArray(body['tools'])
    ? body['tools'].filter((tool) => isObject(tool) && tool['type'] === 'function')
    : []
  return {
    model: body['model'],
    background: body['background'] === true,
    instructions: caller.instructions ?? null,
    tools: tools.map((tool: Record<string, unknown>) => ({
      description: null,
      parameters: null,
      strict: null,
      ...tool,
    })),
    tool_choice: tool_choice ?? 'auto',
    parallel_tool_calls: caller.parallel_tool_calls ?? true,
    text: { format: isObject(text) && isObject(text['format']) ? text['format'] : { type: 'text' } },
    max_output_tokens: lower(caller.max_output_tokens, agent.config['max_tokens']),
    max_tool_calls: typeof body['max_tool_calls'] === 'number' ? body['max_tool_calls'] : null,
    metadata: metadata ?? {},
    reasoning: typeof effort === 'string' ? { effort, summary: null } : null,
    safety_identifier: typeof safety_identifier === 'string' ? safety_identifier : null,
    prompt_cache_key: typeof prompt_cache_key === 'string' ? prompt_cache_key : null,
    ...(typeof user === 'string' ? { user } : {}),
    ...(typeof service_tier === 'string' ? { service_tier } : {}),
    ...(client_metadata === undefined ? {} : { client_metadata }),
    ...(typeof temperature === 'number' ? { temperature } : {}),
  }
}

/** The limit of a request, which can only lower that of the agent; null if the request has none. */
function lower(asked: number | undefined, own: unknown): number | null {
  if (asked === undefined) return null
  return typeof own === 'number' ? Math.min(asked, own) : asked
}
