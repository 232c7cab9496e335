import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isIdempotent } from '#contract/core/operation.ts'
import { operations } from '#contract/operations.ts'
import { eventExamples } from '#contract/events/event-examples.ts'
import { deliveryBody, signatureHeaders } from '../../server/src/events/webhooks/delivery/sign.ts'
import { shareTestService } from '../../server/test/shared-service.ts'
import { pythonMethods } from '../../tools/gen/gen-python.ts'
import { listMember, makerOf } from '../../tools/gen/gen-sdk.ts'
import { runUnitTests, withPython } from './python.ts'

/** What a test of Python has to know of each operation. */
function facts() {
  const methods = new Map(pythonMethods().map((method) => [method.id, method]))
  return operations.map((operation) => {
    const method = methods.get(operation.id)!
    let index = 0
    return {
      ...method,
      method: operation.method,
      path: operation.path.replaceAll(/\{\w+\}/g, () => `id${index++}`),
      member: listMember(operation) ?? '',
      isUrl: makerOf(operation) === 'url',
      isUpload: operation.upload !== undefined,
      isForm: makerOf(operation) === 'form',
      isOnce: isIdempotent(operation),
      hasBody: operation.body !== undefined,
      required: operation.body?.required ?? [],
      members: [...Object.keys(operation.body?.properties ?? {}), ...Object.keys(operation.query?.properties ?? {})],
    }
  })
}

test('the Python SDK holds its promises without a service', withPython, async () => {
  assert.ok((await runUnitTests(['test_offline'])) > 15)
})

test('every operation has a method of the Python SDK, which sends it', withPython, async () => {
  await runUnitTests(['test_operations'], { CADRE_TEST_OPERATIONS: JSON.stringify(facts()) })
})

test('the Python SDK speaks to a service', withPython, async (t) => {
  const service = await shareTestService()
  t.after(() => service.stop())
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw3Vyo2yZ0Tmg='
  const occurred_at = new Date().toISOString()
  const body = deliveryBody({ type: 'agent.failed', occurred_at, data: eventExamples['agent.failed'] })
  const headers = signatureHeaders([secret], { id: 'evt_1', at: new Date(), body })
  const tests = await runUnitTests(['test_service'], {
    CADRE_BASE_URL: service.url,
    CADRE_API_KEY: service.owner.api_key,
    CADRE_TEST_SIGNED: JSON.stringify({ body, headers, secret, agent_id: eventExamples['agent.failed'].agent.id }),
  })
  assert.ok(tests >= 10)
})
