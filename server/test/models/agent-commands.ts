import fc from 'fast-check'
import type { AgentAction } from '#contract/resources/agent-lifecycle.ts'
import { eventually, type Reply, type Send } from '../harness.ts'
import {
  explain,
  explainBoth,
  settled,
  startingConfig,
  takenName,
  type Change,
  type Operation,
  type World,
} from './agent-model.ts'

/** What a run knows: everything that may be the case, and which agent it means. */
export interface AgentRun {
  send: Send
  project: number
  name: string
  /** The agent that it made last; it may be gone. */
  id: string
  worlds: World[]
  commands: number
}

/** An operation before it is known on which agent and which revision. */
export type Wish =
  | { kind: 'create' }
  | { kind: 'launch' }
  | { kind: 'read' }
  | { kind: 'versions' }
  | { kind: AgentAction | 'delete'; match: Match }
  | { kind: 'update'; change: Change; match: Match }
  | { kind: 'rollback'; version: number; match: Match }

/** Which revisions a request names in `If-Match`. */
type Match = 'none' | 'any' | 'right' | 'one of' | 'wrong'

const match = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Match>('none') },
  { weight: 3, arbitrary: fc.constantFrom<Match>('any', 'right', 'one of', 'wrong') },
)

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record(
      {
        description: fc.constantFrom(null, 'changed', ''),
        config: fc.record(
          {
            temperature: fc.constantFrom(null, 0, 1),
            system_prompt: fc.constantFrom(null, 'Be brief.'),
            tools: fc.constantFrom(null, [], ['current_time']),
            model: fc.constantFrom('builtin/script', 'builtin/echo'),
            own: fc.constantFrom(null, 1),
          },
          { requiredKeys: [] },
        ),
        metadata: fc.record({ team: fc.constantFrom(null, 'b'), version: fc.constant(null) }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    ),
  },
  { weight: 1, arbitrary: fc.constant({ name: takenName }) },
)

const wish: fc.Arbitrary<Wish> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<Wish[]>({ kind: 'create' }, { kind: 'launch' }) },
  { weight: 3, arbitrary: fc.constantFrom<Wish[]>({ kind: 'read' }, { kind: 'versions' }) },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constantFrom<AgentAction[]>('start', 'pause', 'stop', 'restart'),
      match,
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('update' as const), change, match }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('rollback' as const), version: fc.nat(3), match }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), match }) },
)

/** A request, as what it asks for. */
export async function request(run: Pick<AgentRun, 'send' | 'project'>, operation: Operation): Promise<Reply> {
  const agents = `/api/v1/projects/${run.project}/agents`
  const body = bodyOf(operation)
  const headers: Record<string, string> = 'match' in operation && operation.match ? { 'if-match': operation.match } : {}
  const options = { headers, ...(body ? { body } : {}) }
  if (operation.kind === 'create') return run.send('POST', agents, options)
  if (operation.kind === 'launch') return run.send('POST', '/api/v1/agents', options)
  const agent = `${agents}/${operation.id}`
  if (operation.kind === 'read') return run.send('GET', agent)
  if (operation.kind === 'versions') return run.send('GET', `${agent}/versions?limit=100`)
  if (operation.kind === 'update') return run.send('PUT', agent, options)
  if (operation.kind === 'delete') return run.send('DELETE', agent, options)
  return run.send('POST', `${agent}/${operation.kind}`, options)
}

function bodyOf(operation: Operation): object | undefined {
  if (operation.kind === 'update') return operation.change
  if (operation.kind === 'rollback') return { version: operation.version }
  if (operation.kind === 'launch') return { name: operation.name, project_id: operation.project }
  if (operation.kind !== 'create') return undefined
  return { name: operation.name, description: 'made', config: startingConfig, metadata: { team: 'a' } }
}

function operationOf({ name, project, id, worlds }: AgentRun, wanted: Wish): Operation {
  if (wanted.kind === 'create' || wanted.kind === 'launch') return { kind: wanted.kind, name, project }
  if (wanted.kind === 'read' || wanted.kind === 'versions') return { kind: wanted.kind, id }
  return { ...wanted, id, match: headerOf(wanted.match, worlds[0]?.revision ?? 1) }
}

function headerOf(wanted: Match, revision: number): string | undefined {
  const headers = {
    none: undefined,
    any: '*',
    right: `"${revision}"`,
    'one of': `"0", W/"${revision}"`,
    wrong: `"${revision + 7}"`,
  }
  return headers[wanted]
}

/** One operation after the other. */
class Ask implements fc.AsyncCommand<AgentRun, AgentRun> {
  readonly #wish: Wish
  constructor(wanted: Wish) {
    this.#wish = wanted
  }
  check(): boolean {
    return true
  }
  async run(run: AgentRun): Promise<void> {
    const operation = operationOf(run, this.#wish)
    run.worlds = explain(run.worlds, operation, await request(run, operation))
    run.commands += 1
    await identify(run)
  }
  toString(): string {
    return JSON.stringify(this.#wish)
  }
}

/** Two operations at once, the second a moment later. */
class AskBoth implements fc.AsyncCommand<AgentRun, AgentRun> {
  readonly #wishes: readonly [Wish, Wish]
  readonly #later_ms: number
  constructor(one: Wish, other: Wish, later_ms: number) {
    this.#wishes = [one, other]
    this.#later_ms = later_ms
  }
  check(): boolean {
    return true
  }
  async run(run: AgentRun): Promise<void> {
    const [first, second] = [operationOf(run, this.#wishes[0]), operationOf(run, this.#wishes[1])]
    const [one, other] = await Promise.all([
      request(run, first),
      new Promise((resolve) => setTimeout(resolve, this.#later_ms)).then(() => request(run, second)),
    ])
    run.worlds = explainBoth(run.worlds, { operation: first, reply: one }, { operation: second, reply: other })
    run.commands += 2
    await identify(run)
  }
  toString(): string {
    return `${JSON.stringify(this.#wishes[0])} ‖ +${this.#later_ms} ms ${JSON.stringify(this.#wishes[1])}`
  }
}

/** Tasks that fail because of the configuration, until the agent is in `error` (decision D36). */
class Break implements fc.AsyncCommand<AgentRun, AgentRun> {
  check({ worlds }: AgentRun): boolean {
    const last = settled(worlds).map((world) => (world?.settles_to ?? world?.status) === 'running' && world)
    return last.every((world) => world && world.versions.at(-1)!.config['model'] === 'builtin/script')
  }
  async run(run: AgentRun): Promise<void> {
    const agent = `/api/v1/projects/${run.project}/agents/${run.id}`
    // Until then nothing breaks it: a breaker acts on agents that run.
    await eventually(async () => (await run.send('GET', agent)).body.status === 'running')
    const input = JSON.stringify([{ error: { code: 'model_not_found' } }])
    for (let i = 0; i < 3; i++) await run.send('POST', `${agent}/tasks?wait=10`, { body: { input } })
    await eventually(async () => (await run.send('GET', agent)).body.status === 'error')
    run.worlds = run.worlds.map(
      (world) =>
        world && {
          ...world,
          status: 'error',
          settles_to: null,
          revision: world.revision + 1,
          updated: { after: 'is' in world.updated ? world.updated.is : world.updated.after },
        },
    )
    run.commands += 1
  }
  toString(): string {
    return 'break'
  }
}

/** Looks up the agent that a launch made without telling its id. */
async function identify(run: AgentRun): Promise<void> {
  if (run.worlds.some((world) => world?.id === null)) {
    const { body } = await run.send('GET', `/api/v1/projects/${run.project}/agents?limit=100`)
    const { id } = body.agents.find(({ name }: { name: string }) => name === run.name)
    run.worlds = run.worlds.map((world) => (world?.id === null ? { ...world, id } : world))
  }
  run.id = run.worlds.find((world) => world)?.id ?? run.id
}

export const agentCommands = fc.commands<AgentRun, AgentRun, false>(
  [
    wish.map((wanted) => new Ask(wanted)),
    wish.map((wanted) => new Ask(wanted)),
    fc.tuple(wish, wish, fc.nat(4)).map(([one, other, later_ms]) => new AskBoth(one, other, later_ms)),
    fc.constant(new Break()),
  ],
  { maxCommands: 40, size: 'max' },
)
