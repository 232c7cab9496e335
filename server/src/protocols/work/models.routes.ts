import type { FastifyInstance, FastifyReply } from 'fastify'
import { openaiError, type OpenaiError } from '#contract/doors/openai-errors.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import * as operations from '#contract/doors/work-gateway.ts'
import { gatewayBounds } from '#contract/doors/work-gateway.ts'
import { Problem } from '#contract/core/problems.ts'
import type { Context } from '../../context.ts'
import type { Lease } from '../../engine/remote/lease.ts'
import { digestOf } from '../../engine/remote/model-calls.ts'
import { ModelError } from '../../engine/models/model.ts'
import { untilClosed, whenClosed } from '../../http/connection/until-closed.ts'
import { Answer, handle } from '../../http/handle.ts'
import type { HttpContext } from '../../http/http-context.ts'
import { madeAt, newId } from '../../platform/ids.ts'
import { requireLease } from '../../resources/work/leases.queries.ts'
import { keepOfTask, makeDoorFiles, requireNamedFiles } from '../door-files.ts'
import { badParameter, shown } from '../openai/problems.ts'
import { chatForm, responseForm, type AnswerForm, type Asked } from './answer-forms.ts'
import { digested, readAsk } from './read-ask.ts'

/** The model and the request for it. */
type AskedModel = Pick<Parameters<Context['engine']['work']['callModel']>[1], 'model' | 'ask' | 'max_tokens'>

/** Interval of the comments that keep a quiet stream open. */
const keepAlive_ms = 15_000

/** Serves the models of a task's agent to its worker. Every call is journaled. */
export function workModelRoutes(app: FastifyInstance, http: HttpContext, context: Context): void {
  const { engine, files, log } = context
  const { work } = engine
  const doorFiles = makeDoorFiles(context)

  handle(app, http, operations.listWorkModels, {
    load: requireLease,
    run: async ({ loaded }) => {
      const { names } = await work.models(loaded)
      const created = 0
      return { object: 'list', data: names.map((id) => ({ id, object: 'model', created, owned_by: 'cadre' })) }
    },
  })

  for (const [operation, dialect] of [
    [operations.createWorkChatCompletion, 'chat'],
    [operations.createWorkResponse, 'responses'],
  ] as const) {
    handle(app, http, operation, {
      load: requireLease,
      receive: async (loading, validated) => {
        const { project_id } = await requireLease(loading)
        const { urls } = readAsk(validated().body, dialect).files
        return doorFiles.receive(loading.request, { project_id, created_by: loading.principal.user_id }, urls)
      },
      run: async ({ sql, loaded, body, request }) => {
        if (work.callsUnderWay(loaded) >= gatewayBounds.calls_at_once)
          throw new Problem('queue_full', undefined, {
            message: `A worker may have at most ${gatewayBounds.calls_at_once} calls running at the same time.`,
            headers: { 'retry-after': '1' },
          })
        const { names, named } = await work.models(loaded)
        const asked = (body as Record<string, unknown>)['model']
        const model = typeof asked === 'string' ? named(asked) : undefined
        if (model === undefined)
          throw new Problem('agent_not_found', undefined, {
            message: `The agent has no model ${shown(asked)}. Its models: ${names.join(', ')}.`,
            members: { param: 'model' },
          })
        const { ask, max_tokens, files: asks } = readAsk(body, dialect)
        await requireNamedFiles(sql, loaded.project_id, asks.named)
        const received = await keepOfTask({ sql, files }, loaded, doorFiles.of(request))
        return { model, max_tokens, ask: ask(received) }
      },
      finish: async ({ loaded, body }, answer, reply) => {
        const request = body as Record<string, unknown>
        const { model, ask, max_tokens } = answer.body as AskedModel
        const form = (step_id: string) => formOf(request, dialect, step_id)
        const digest = digestOf(digested(dialect, request))
        const asked = { model, ask, max_tokens, digest, signal: untilClosed(reply) }
        reply.header('cadre-task-id', loaded.task_id)
        if (request['stream'] === true) return stream(reply, loaded, asked, form)
        const done = await work
          .callModel(loaded, { ...asked, on_step: () => {}, on_text: () => {} })
          .catch((error: unknown) => Promise.reject(asProblem(error)))
        reply.header('cadre-step-id', done.step.id)
        if (done.is_replay) reply.header('cadre-replayed', 'true')
        settle(reply, done)
        return new Answer(200, form(done.step.id).whole(done))
      },
    })
  }

  /**
   * Marks a result as delivered if the response was written completely. From then on, an equal call is a new call.
   */
  function settle(reply: FastifyReply, done: { delivered(): Promise<void>; dropped(): void }): void {
    whenClosed(reply.raw, () => {
      if (!reply.raw.writableFinished) return done.dropped()
      done
        .delivered()
        .catch((error: unknown) =>
          log.warn({ err: error }, 'delivery of a model response could not be stored; a repeated call gets it again'),
        )
    })
  }

  async function stream(
    reply: FastifyReply,
    lease: Lease,
    asked: Omit<Parameters<typeof work.callModel>[1], 'on_step' | 'on_text'>,
    formOfStep: (step_id: string) => AnswerForm,
  ): Promise<Answer | undefined> {
    const response = reply.raw
    let timer: NodeJS.Timeout | undefined
    let step_id: string | undefined
    let form: AnswerForm | undefined
    let isStreamed = false
    const open = (): void => {
      if (timer) return
      const headers = reply.getHeaders() as Record<string, string>
      reply.hijack()
      response.on('error', () => {})
      response.writeHead(200, {
        ...headers,
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-cache, no-transform',
        'x-accel-buffering': 'no',
      })
      timer = setInterval(() => response.write(': keep-alive\n\n'), keepAlive_ms)
    }
    /** The form of the answer, after its first frames. */
    const begun = (): AnswerForm => {
      open()
      if (form) return form
      // A call that is refused has no step.
      form = formOfStep(step_id ?? newId('step'))
      for (const text of form.begin()) response.write(text)
      return form
    }
    const late = setTimeout(() => {
      open()
      response.write(': keep-alive\n\n')
    }, keepAlive_ms)
    try {
      const done = await work.callModel(lease, {
        ...asked,
        on_step: (id) => (step_id = id),
        on_text(piece) {
          isStreamed = true
          for (const text of begun().text(piece)) response.write(text)
        },
      })
      if (!timer) {
        reply.header('cadre-step-id', done.step.id)
        if (done.is_replay) reply.header('cadre-replayed', 'true')
      }
      settle(reply, done)
      for (const text of begun().end(done, isStreamed)) response.write(text)
      response.end()
    } catch (error) {
      const problem = asProblem(error)
      if (!timer) throw problem
      for (const text of begun().fail(errorOf(problem))) response.write(text)
      response.end()
    } finally {
      clearTimeout(late)
      clearInterval(timer)
    }
    return undefined
  }
}

/**
 * The form of an answer. Its ids are those of the step, so that a worker that gets it again, and sends it back with the
 * next call, makes the same call.
 */
function formOf(request: Record<string, unknown>, dialect: 'chat' | 'responses', step_id: string): AnswerForm {
  const { model, stream_options } = request
  const asked: Asked = {
    model,
    created: Math.floor(madeAt(step_id) / 1000),
    usage: isObject(stream_options) && stream_options['include_usage'] === true,
  }
  const name = step_id.slice('step_'.length)
  return dialect === 'chat' ? chatForm(asked, `chatcmpl-${name}`) : responseForm(asked, `resp_${name}`, {})
}

function errorOf(problem: Problem): OpenaiError['error'] {
  return openaiError(problem).error
}

/** The problem of a failed model call. Its status tells clients of the protocol whether to retry. */
function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error
  if (!(error instanceof ModelError)) return new Problem('internal_error', undefined, { cause: error })
  const { code, message, retryable, retry_after } = error
  if (code === 'provider_rate_limited')
    return new Problem('queue_full', undefined, {
      message,
      headers: { 'retry-after': String(Math.ceil(retry_after ?? 1)) },
    })
  if (retryable) return new Problem('service_unavailable', undefined, { message, headers: { 'retry-after': '1' } })
  if (code === 'provider_bad_answer' || code === 'provider_credentials_refused' || code === 'provider_not_configured')
    return new Problem('bad_gateway', undefined, { message })
  return badParameter(code === 'model_not_found' ? 'model' : 'messages', message, code)
}
