import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { it } from 'node:test'
import { eventually } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { createProject } from '../../../test/fixtures.ts'

const guide = readFileSync(new URL('../../../../docs/guides/delegation.md', import.meta.url), 'utf8')

it('the guide of delegation does what it says', async (t) => {
  const test = await shareTestService()
  t.after(() => test.stop())
  const project = await createProject(test.send, 'guide')
  const ids: Record<string, string> = {}
  const fill = (text: string): string => text.replaceAll(/\{(researcher|analyst)\}/g, (_, name: string) => ids[name]!)
  const examples = [...guide.matchAll(/```http\n(\w+) (\S+)\n\n(.*?)```/gs)]
  assert.equal(examples.length, 3)
  let output = ''
  for (const [, method = '', path = '', body = ''] of examples) {
    const at = `${project.path}${fill(path)}`
    const answer = await test.send(method, at, { body: fill(body) })
    assert.equal(answer.status, 201, JSON.stringify(answer.body))
    if (answer.body.name) {
      ids[answer.body.name] = answer.body.id
      const agent = `${project.path}/agents/${answer.body.id}`
      await eventually(async () => (await test.send('GET', agent)).body.status === 'running')
    } else {
      const task = `${project.path}/tasks/${answer.body.id}?wait=10`
      output = await eventually(async () => {
        const { body: now } = await test.send('GET', task)
        return now.status === 'completed' && now.output.content
      })
    }
  }
  assert.ok(guide.includes(`The task ends with \`${output}\``), output)
})
