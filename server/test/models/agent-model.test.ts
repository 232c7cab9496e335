import assert from 'node:assert/strict'
import fc from 'fast-check'
import { after, before, describe, it } from 'node:test'
import { agentMoves } from '#contract/resources/agent-lifecycle.ts'
import { startTestService, type TestService } from '../harness.ts'
import { checkMoves, type Move } from '../history/check-moves.ts'
import { agentCommands, type AgentRun } from './agent-commands.ts'
import { takenName } from './agent-model.ts'
import { sizeOf } from '../long-run.ts'
import { makePace } from './pace.ts'

/** On a busy machine of two cores; the models together take less than 40 s in a long run. */
const time_ms = sizeOf({ short: 1500, long: 9000 })

let service: TestService
let project: number

before(async () => {
  service = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/script' })
  project = (await service.send('POST', '/api/v1/projects', { body: { name: 'agent-model' } })).body.id
  await service.send('POST', `/api/v1/projects/${project}/agents`, { body: { name: takenName } })
})
after(() => service.stop())

describe('whatever is asked of an agent, one after the other or two at once', () => {
  it('requests to an agent, single or concurrent, get the responses of its model, and its log has only allowed transitions', async () => {
    const pace = makePace('agent model', time_ms)
    let names = 0
    const property = fc.asyncProperty(agentCommands, async (commands) => {
      if (!pace.goesOn()) return
      const run: AgentRun = {
        send: service.send,
        project,
        name: `agent-${++names}`,
        id: 'agent_01jcm3x5v8f9a2b4c6d8e0g2h4',
        worlds: [undefined],
        commands: 0,
      }
      try {
        await fc.asyncModelRun(() => ({ model: run, real: run }), commands)
        await assertMoves(run)
      } catch (error) {
        pace.failed()
        throw error
      }
      pace.count(run.commands)
    })
    await fc.assert(property, { seed: pace.seed, numRuns: pace.numRuns })
    pace.report()
  })
})

/** The log of the run's agent is a way through the table of moves, and no run leaves its agent behind. */
async function assertMoves({ id, worlds }: AgentRun): Promise<void> {
  if (!worlds.some((world) => world)) return
  const rows = await service.sql<{ context: Record<string, unknown> }>`
    select context from agent_log where agent_id = ${id} and context ? 'to' order by timestamp, id`
  const moves = rows.map(({ context }) => ({ ...context, key: id })) as unknown as Move[]
  assert.deepEqual(checkMoves(moves, agentMoves, ['creating']), [])
  await service.send('DELETE', `/api/v1/projects/${project}/agents/${id}`)
}
