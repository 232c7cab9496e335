import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'
import { ownerOf } from '../../server/test/actors.ts'
import { startMcpServer } from '../../server/test/fakes/mcp-server.ts'
import { issuerClients, TokenIssuer } from '../../server/test/fakes/token-issuer.ts'
import { eventually, startTestService } from '../../server/test/harness.ts'
import { comeBack, startTokenServer } from '../../server/test/fakes/token-world.ts'
import { runCommand, startCommand, temporaryFolder } from '../process.ts'
import { createProject } from '../../server/test/fixtures.ts'

const root = new URL('../..', import.meta.url).pathname
const guide = readFileSync(join(root, 'docs/guides/credentials.md'), 'utf8')
const examples = [...guide.matchAll(/```http\n(\w+) (\S+)\n(.*?)```/gs)].map(
  ([, method = '', path = '', body = '']) => ({
    method,
    path,
    body: body.trim(),
  }),
)

/** Costs about 3 s: it runs two commands. */
it(
  'the examples of the guide to credentials that renew themselves run as they stand',
  { timeout: 240_000 },
  async (t) => {
    const issuer = await TokenIssuer.start({ registers: true })
    t.after(() => issuer.stop())
    const api = await startTokenServer(t, issuer)
    const mcp = await startMcpServer(t, {
      before: (request, response) => {
        if (request.url?.startsWith('/.well-known/oauth-protected-resource')) {
          const metadata = {
            resource: `${mcp.url}/mcp`,
            authorization_servers: [issuer.issuer],
            scopes_supported: ['tools:read'],
          }
          response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata))
          return true
        }
        if (request.headers.authorization) return false
        response.writeHead(401).end()
        return true
      },
    })
    const service = await startTestService({ CADRE_EGRESS_ALLOW: 'loopback' })
    t.after(() => service.stop())
    const project = await createProject(service.send, 'guide')
    const base = project.path
    const folder = await temporaryFolder()
    t.after(() => folder.remove())
    const env = {
      HOME: folder.path,
      XDG_CONFIG_HOME: folder.path,
      CADRE_BASE_URL: service.url,
      CADRE_API_KEY: service.owner.api_key,
      CADRE_PROJECT: String(project.id),
    }
    const here = (text: string): string =>
      text
        .replaceAll('https://id.example.com', issuer.issuer)
        .replaceAll('https://api.example.com', api.url)
        .replaceAll('"api.example.com"', `"${new URL(api.url).host}"`)
        .replaceAll('https://mcp.example.com', mcp.url)
        .replaceAll('"client_id": "cadre"', `"client_id": "${issuerClients.own.client_id}"`)
        .replaceAll('the-secret-of-the-client', issuerClients.own.client_secret)
    const made: Record<string, any> = {}
    let last = ''
    const approve = async (url: string): Promise<void> => {
      const page = await comeBack(service, await issuer.approve(url), ownerOf(service))
      assert.equal(page.status, 200, page.body)
    }
    assert.equal(examples.length, 6)
    for (const { method, path, body } of examples) {
      const at = `${base}${path.replace('{credential_id}', last)}`
      const reply = await service.send(method, at, body === '' ? {} : { body: here(body) })
      assert.ok(reply.status < 300, `${method} ${path} ${JSON.stringify(reply.body)}`)
      if (reply.body.type === 'oauth2') last = reply.body.id
      if (reply.body.name) made[reply.body.name] = reply.body
      if (path.endsWith('/authorize')) await approve(reply.body.url)
    }
    assert.equal(made.BILLING.status, 'connected')
    assert.ok(guide.includes('`status: "connected"`'))

    const [line = ''] = /^cadre credentials connect .*$/m.exec(guide) ?? []
    const args = line.split(' ').slice(1)
    const tracker = made.TRACKER.id as string
    const command = startCommand(env, [...args.slice(0, -1), tracker])
    let printed = ''
    command.process.stdout!.on('data', (text: string) => (printed += text))
    await approve(await eventually(async () => /^http\S+$/m.exec(printed)?.[0]))
    const { code, stdout, stderr } = await command.ended
    assert.equal(code, 0, stderr)
    assert.match(stdout, /\tconnected\n/)
    const issues = await service.send('POST', `${base}/credentials/${made.ISSUES.id}/authorize`)
    await approve(issues.body.url)
    const read = await runCommand(env, ['credentials', 'get', made.ISSUES.id, '--jq', '.status, .issuer'])
    assert.equal(read.stdout, `connected\n${issuer.issuer}\n`, read.stderr)

    const config = {
      model: 'builtin/script',
      tools: ['invoices'],
      system_prompt: JSON.stringify([
        { tool_calls: [{ name: 'invoices', arguments: {} }] },
        { text: '{{tool_result}}' },
      ]),
    }
    const { body: agent } = await service.send('POST', `${base}/agents`, { body: { name: 'clerk', config } })
    await eventually(async () => (await service.send('GET', `${base}/agents/${agent.id}`)).body.status === 'running')
    const { body: task } = await service.send('POST', `${base}/agents/${agent.id}/tasks?wait=30`, {
      body: { input: 'Go.' },
    })
    assert.equal(task.output.content, 'fine, Bearer [redacted]')
  },
)
