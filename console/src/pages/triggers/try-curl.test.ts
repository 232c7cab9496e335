import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { it } from 'node:test'
import { promisify } from 'node:util'
import { triggerSources, type TriggerSource } from '#contract/doors/trigger-sources.ts'
import { verify, type HmacSettings } from '../../../../server/src/protocols/triggers/verify.ts'
import { tryCurl } from './try-curl.ts'

const secret = "a secret with a 'quote' and $dollar"

/** Runs the commands, and gives what the service would say of the request. */
async function refusalOf(source: TriggerSource, hmac: HmacSettings | null, known: boolean): Promise<unknown> {
  const arrived = Promise.withResolvers<{ headers: Record<string, string>; body: Buffer }>()
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    arrived.resolve({ headers: request.headers as Record<string, string>, body: Buffer.concat(chunks) })
    response.end()
  }).listen(0, '127.0.0.1')
  await new Promise((listening) => server.once('listening', listening))
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/x`
    const commands = tryCurl({ source, hmac, url, secret: known ? secret : undefined })
    assert.ok(commands, source)
    await promisify(execFile)('sh', ['-ec', commands.replace('SECRET="$SECRET"\n', '')], {
      env: { ...process.env, SECRET: secret },
    })
    return verify({ source, hmac, secrets: [secret] }, await arrived.promise, Date.now())
  } finally {
    server.close()
  }
}

for (const source of triggerSources.filter((one) => one !== 'linear' && one !== 'standard_webhooks'))
  it(`the commands that try a trigger of ${source} prove themselves`, async () => {
    const hmac = source === 'hmac' ? { header: 'X-Signature' } : null
    assert.equal(await refusalOf(source, hmac, true), undefined)
    assert.equal(await refusalOf(source, hmac, false), undefined)
  })

it('the commands that try a trigger sign in the form that it says', async () => {
  for (const hmac of [
    { header: 'X-A', algorithm: 'sha512', encoding: 'base64', prefix: 'mac=' },
    { header: 'X-B', algorithm: 'sha1', timestamp_header: 'X-Time' },
  ] as const)
    assert.equal(await refusalOf('hmac', hmac, true), undefined)
})

it('a source whose signature a shell cannot make has no commands', () => {
  for (const source of ['linear', 'standard_webhooks'] as const)
    assert.equal(tryCurl({ source, hmac: null, url: 'http://x', secret }), undefined)
})
