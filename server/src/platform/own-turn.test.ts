import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createProject } from '../../test/fixtures.ts'
import { startTestService, type TestService } from '../../test/harness.ts'
import { largeBody_bytes } from './own-turn.ts'

describe('large bodies', () => {
  let test: TestService
  before(async () => (test = await startTestService()))
  after(() => test.stop())

  it('of large bodies that arrive together one is parsed in each turn of the event loop', async () => {
    const { path } = await createProject(test.send, 'large')
    let turn = 0
    let next: NodeJS.Immediate
    const count = (): void => {
      turn += 1
      next = setImmediate(count)
    }
    count()
    const answeredIn: number[] = []
    test.service.app.server.on('request', (_request, response) => {
      const end = response.end.bind(response) as (...args: unknown[]) => typeof response
      response.end = ((...args: unknown[]) => {
        answeredIn.push(turn)
        return end(...args)
      }) as typeof response.end
    })
    // Refused in the turn in which it is parsed.
    const body = `{"description": "${'x'.repeat(largeBody_bytes)}"`
    const replies = await Promise.all(Array.from({ length: 20 }, () => test.send('POST', `${path}/agents`, { body })))
    clearImmediate(next!)
    assert.deepEqual([...new Set(replies.map(({ status }) => status))], [400])
    assert.equal(new Set(answeredIn).size, replies.length, `${answeredIn}`)
  })
})
