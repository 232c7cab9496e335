import assert from 'node:assert/strict'
import { it } from 'node:test'
import { FairTurns, TooManyWait, type FairTurnsOptions, type Party } from './fair-turns.ts'

const never = new AbortController().signal
const limits: FairTurnsOptions = {
  places: 4,
  ofOrganization: 3,
  ofProject: 2,
  waiting: { ofProject: 5, ofOrganization: 8, all: 12 },
}
const party = (org_id: string, project_id: number): Party => ({ org_id, project_id })
/** Lets pending promise callbacks run. */
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** Takes places and records the order in which callers get them. */
function recorded(turns: FairTurns) {
  const got: string[] = []
  const leave: (() => void)[] = []
  const take = (name: string, of: Party, signal = never): Promise<void> =>
    turns.take(of, signal).then((give) => {
      got.push(name)
      leave.push(give)
    })
  return { got, leave, take }
}

it('a project leaves a place to others of its organization, and an organization leaves one to others', async () => {
  const { got, take } = recorded(new FairTurns(limits))
  for (let i = 0; i < 5; i++) void take('a1', party('a', 1))
  await settled()
  assert.deepEqual(got, ['a1', 'a1'])
  void take('a2', party('a', 2))
  void take('a3', party('a', 3))
  void take('b9', party('b', 9))
  await settled()
  assert.deepEqual(got, ['a1', 'a1', 'a2', 'b9'])
})

it('a released place goes to organizations in turn, and to the projects of each in turn', async () => {
  const turns = new FairTurns({ ...limits, places: 1, ofOrganization: 1, ofProject: 1 })
  const { got, leave, take } = recorded(turns)
  for (let i = 0; i < 3; i++) void take('a1', party('a', 1))
  void take('a2', party('a', 2))
  void take('b9', party('b', 9))
  void take('c7', party('c', 7))
  for (let i = 0; i < 6; i++) {
    await settled()
    leave.shift()!()
  }
  await settled()
  assert.deepEqual(got, ['a1', 'a1', 'b9', 'c7', 'a2', 'a1'])
})

it('the queues of a project, of an organization and of all are bounded, and a full one does not block others', async () => {
  const turns = new FairTurns(limits)
  const refused: string[] = []
  const take = (name: string, of: Party): void =>
    void turns.take(of, never).catch((error: unknown) => {
      assert.ok(error instanceof TooManyWait)
      refused.push(name)
    })
  for (let i = 0; i < 8; i++) take('a1', party('a', 1))
  await settled()
  assert.deepEqual(refused, ['a1'], 'two run and five wait')
  for (let i = 0; i < 6; i++) take('a2', party('a', 2))
  await settled()
  assert.deepEqual(refused, ['a1', 'a2', 'a2'], 'one more runs and three wait: eight of the organization')
  for (let project = 1; project < 9; project++) take(`b${project}`, party('b', project))
  await settled()
  assert.deepEqual(refused.slice(3), ['b6', 'b7', 'b8'], 'one runs and four wait: twelve in all')
})

it('a caller that leaves the queue gets no place and blocks none', async () => {
  const turns = new FairTurns({ ...limits, places: 1, ofOrganization: 1, ofProject: 1 })
  const { got, leave, take } = recorded(turns)
  await take('first', party('a', 1))
  const abort = new AbortController()
  const reason = new Error('canceled')
  const deleted = assert.rejects(take('gone', party('a', 1), abort.signal), reason)
  void take('last', party('b', 1))
  abort.abort(reason)
  await deleted
  leave[0]!()
  await settled()
  assert.deepEqual(got, ['first', 'last'])
  await assert.rejects(turns.take(party('a', 1), AbortSignal.abort(reason)), reason)
})
