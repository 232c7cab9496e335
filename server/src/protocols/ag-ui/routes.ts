import { EventType } from '@ag-ui/core'
import type { FastifyInstance, FastifyReply } from 'fastify'
import * as operations from '#contract/doors/ag-ui.ts'
import { projectId } from '#contract/core/project-id.ts'
import { notFound } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import { judgeInput } from '../../engine/tools/schemas/schema-judge.ts'
import { Answer, handle, type Loading } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { isId } from '../../platform/ids.ts'
import type { Sql } from '../../platform/postgres/database.ts'
import { makeLoadAsked } from '../../resources/tasks/asked-agents.ts'
import { findDoorAgent, findDoorKey, type DoorAgent } from '../door-keys.queries.ts'
import { findResponse, type FoundResponse } from '../door-responses.queries.ts'
import { cancelSegment, type SegmentPointer } from '../open-segment.ts'
import { SegmentFold } from '../segment-fold.ts'
import { makeSourceOf, streamSegment, type SourceOf, type Telling } from '../served-segment.ts'
import { lastText, openRun } from './open-run.ts'
import { badInput, OpenInterrupts } from './problems.ts'
import { aguiConfig, readRun } from './read-input.ts'
import { RunState } from './run-state.ts'
import { listAskedApprovals } from './runs.queries.ts'

/** A run that is refused with an event of its stream. */
interface Refused {
  refused: { message: string; threadId: string; runId: string }
}

/** Serves AG-UI at `/agui`: user interfaces run agents, and each run is a segment of a task. */
export function aguiRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const loadAsked = makeLoadAsked(context.database)
  const reading = { ...context, sourceOf: makeSourceOf(context) }
  const load = ({ sql, params, principal }: Loading): Promise<DoorAgent> =>
    requirePublished(sql, params['agent_id']!, principal.org_id)
  const loadRun = async (loading: Loading): Promise<FoundResponse> => findRun(loading, await load(loading))

  handle(app, http, operations.startRun, {
    load,
    run: async (handling): Promise<SegmentPointer | Refused> => {
      const { loaded: agent, sql } = handling
      const body = handling.body as Record<string, unknown>
      const asked = readRun(body, agent.config)
      await handling.occupy()
      const path = { project_id: projectId(agent.project_id), agent_id: agent.id }
      const askedAgent = await loadAsked({ ...handling, params: path })
      await judgeInput(askedAgent.config, lastText(asked.messages), { ...agent, ...handling.principal })
      try {
        return await sql.begin((tx) => openRun(tx, context, { ...handling, sql: tx }, askedAgent, asked, body))
      } catch (error) {
        if (!(error instanceof OpenInterrupts)) throw error
        return { refused: { message: error.message, threadId: asked.thread_id, runId: asked.run_id } }
      }
    },
    finish: async (handling, answer, reply) => {
      const opened = answer.body as SegmentPointer | Refused
      if ('refused' in opened) return refusal(opened, reply)
      const found = await findResponse(context.sql, opened.response_id, handling.principal, { hidden: true })
      if (!found) throw notFound('response_not_found', 'response', opened.response_id)
      return streamRun(reply, reading, found, lastEventId(handling))
    },
  })

  handle(app, http, operations.getRun, {
    load: loadRun,
    run: async (handling) => {
      lastEventId(handling)
      await handling.occupy()
      return {}
    },
    finish: (handling, _answer, reply) => streamRun(reply, reading, handling.loaded, lastEventId(handling)),
  })

  handle(app, http, operations.cancelRun, {
    load: loadRun,
    run: async (handling) => {
      const { loaded, principal } = handling
      await cancelSegment(handling.sql, context, handling, loaded)
      const { status } = (await findResponse(handling.sql, loaded.id, principal, { hidden: true })) ?? loaded
      return { run_id: handling.params['run_id'], task_id: loaded.task_id, status }
    },
  })
}

async function requirePublished(sql: Sql, id: string, org_id: string): Promise<DoorAgent> {
  const agent = isId('agent', id) ? await findDoorAgent(sql, id, org_id) : undefined
  if (!agent || !aguiConfig(agent.config).published) throw notFound('agent_not_found', 'agent', id.slice(0, 100))
  return agent
}

/** A run of a credential, by the identifier that the client chose. */
async function findRun({ sql, params, principal }: Loading, agent: DoorAgent): Promise<FoundResponse> {
  const run_id = params['run_id']!
  const key = await findDoorKey(sql, { door: 'agui', credential_id: principal.credential_id, key: run_id })
  const found = key && (await findResponse(sql, key.response_id, principal, { hidden: true }))
  if (!found || found.agent_id !== agent.id) throw notFound('response_not_found', 'response', run_id.slice(0, 100))
  return found
}

/** The number of the last frame that the client received; -1 for none. */
function lastEventId({ request }: Loading): number {
  const header = request.headers['last-event-id']
  if (header === undefined || header === '') return -1
  if (typeof header !== 'string' || !/^\d{1,15}$/.test(header))
    throw badInput('Last-Event-ID', 'must be the id of an event of this run')
  return Number(header)
}

function encode(event: object, number?: number): string {
  return `${number === undefined ? '' : `id: ${number}\n`}data: ${JSON.stringify(event)}\n\n`
}

function refusal({ refused: { message, ...names } }: Refused, reply: FastifyReply): Answer {
  reply.header('cache-control', 'no-cache, no-transform')
  reply.type('text/event-stream; charset=utf-8')
  const started = { type: EventType.RUN_STARTED, ...names }
  const failed = { type: EventType.RUN_ERROR, message, code: 'interrupts_open' }
  return new Answer(200, encode(started) + encode(failed))
}

function streamRun(
  reply: FastifyReply,
  context: Pick<Context, 'sql'> & { sourceOf: SourceOf },
  found: FoundResponse,
  after: number,
): Promise<undefined> {
  const fold = new SegmentFold(found)
  const state = new RunState(found, fold)
  reply.header('cadre-task-id', found.task_id)
  const telling: Telling = {
    async take(happening) {
      const ids = state.asks(happening)
      const asked = ids.length === 0 ? [] : await listAskedApprovals(context.sql, ids)
      return state
        .take(happening, asked)
        .filter(({ number }) => number > after)
        .map(({ number, event }) => encode(event, number))
    },
    end: () => [],
  }
  return streamSegment(reply, context.sourceOf(found), fold, telling)
}
