import assert from 'node:assert/strict'
import { test } from 'node:test'
import { differences } from '../../agents/config-diff.ts'
import { bodyOfChange, bodyOfNew, broughtTo, comparable, draftOf, withoutSecrets } from './draft.ts'

const agent = {
  name: 'support',
  description: '',
  config: { model: 'a', retry: { max_attempts: 2 }, environment_variables: { TOKEN: 'secret' } },
  metadata: { tags: ['eu'], team: 'blue', created_by: 'user_1', version: '1.0.3' },
}

test('a copy has what people wrote about the agent, and neither its secrets nor what the service wrote', () => {
  assert.deepEqual(bodyOfNew(draftOf(agent)), {
    name: 'support',
    metadata: { team: 'blue', tags: ['eu'] },
    config: { model: 'a', retry: { max_attempts: 2 } },
  })
})

test('fields that a user changed stay when the agent is read again, and all others follow the agent', () => {
  const before = draftOf(agent)
  const written = {
    ...before,
    name: 'help',
    tags: [],
    metadata: { cost_center: 7 },
    config: { ...before.config, model: 'b' },
    environment: { TOKEN: null },
  }
  const metadata = { ...agent.metadata, room: 'A' }
  const fresh = draftOf({ ...agent, metadata, description: 'New', config: { model: 'c', retry: { max_attempts: 3 } } })
  const brought = broughtTo(fresh, before, written)
  assert.deepEqual(bodyOfChange(fresh, brought), {
    name: 'help',
    metadata: { tags: null, team: null, cost_center: 7 },
    config: { model: 'b', environment_variables: { TOKEN: null } },
  })
  // A concurrent change by another user is preserved.
  assert.deepEqual(brought.metadata, { room: 'A', cost_center: 7 })
  assert.equal(brought.description, 'New')
})

test('variables written as JSON are sent beside those of the form, and no value of either is shown', () => {
  const before = draftOf(agent)
  const written = {
    ...before,
    config: { ...before.config, environment_variables: { CITY: 'canary' } },
    environment: { TOKEN: 'canary', OLD: null },
  }
  const body = bodyOfChange(before, written)
  assert.deepEqual(body.config, { environment_variables: { CITY: 'canary', TOKEN: 'canary', OLD: null } })
  assert.doesNotMatch(JSON.stringify(withoutSecrets(body)), /canary/)
})

test('a variable that is set, changed or removed is a difference, and one that stays is none', () => {
  const before = draftOf(agent)
  const paths = (environment: Record<string, string | null>) =>
    differences(comparable(before, ['TOKEN']), comparable({ ...before, environment }, ['TOKEN'])).map(
      ({ path }) => path,
    )
  assert.deepEqual(paths({}), [])
  assert.deepEqual(paths({ TOKEN: '' }), ['environment_variables.TOKEN'])
  assert.deepEqual(paths({ TOKEN: null, NEW: 'x' }), ['environment_variables.NEW', 'environment_variables.TOKEN'])
})

test('a schema is sent whole and brought along whole, its removal is null, and what the form does not know stays', () => {
  const schema = (...names: string[]) => ({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string', default: null }])),
  })
  const before = draftOf({
    ...agent,
    config: {
      model: 'a',
      input_schema: schema('a', 'b'),
      output_schema: schema('c'),
      context: { later: 1 },
      new_dial: 7,
    },
  })
  const { output_schema: _, ...others } = before.config
  const written = { ...before, config: { ...others, effort: 'low', input_schema: schema('b') } }
  assert.deepEqual(bodyOfChange(before, written), {
    config: { effort: 'low', input_schema: schema('b'), output_schema: null },
  })
  assert.deepEqual(bodyOfChange(before, before), {})
  const fresh = { ...before, config: { ...before.config, input_schema: schema('a', 'x'), effort: 'high' } }
  const brought = broughtTo(fresh, before, written)
  assert.deepEqual(brought.config, {
    model: 'a',
    input_schema: schema('b'),
    context: { later: 1 },
    new_dial: 7,
    effort: 'low',
  })
})
