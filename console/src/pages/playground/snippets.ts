import type { TaskInput } from './input.ts'
import type { More } from './use-runs.ts'

/** The same as a program over the SDK: a single task or one of a conversation, and its answer. */
export function asSdk(
  {
    project_id,
    agent_id,
    input,
    baseURL,
    more = {},
  }: { project_id: string; agent_id: string; input: TaskInput; baseURL: string; more?: More },
  conversation?: { thread_id: string | undefined },
): string {
  const agent = JSON.stringify(agent_id)
  const thread =
    conversation === undefined
      ? ''
      : conversation.thread_id === undefined
        ? `const { id: thread_id } = await project.threads.create({ agent_id: ${agent} })\n`
        : `const thread_id = ${JSON.stringify(conversation.thread_id)}\n`
  const further = Object.entries(more).map(([name, value]) => `, ${name}: ${JSON.stringify(value)}`)
  const given = `{ input: ${JSON.stringify(input)}${thread === '' ? '' : ', thread_id'}${further.join('')} }`
  return `import { Cadre } from '@cadre/sdk'

const cadre = new Cadre({ apiKey: process.env.CADRE_API_KEY, baseURL: ${JSON.stringify(baseURL)} })
const project = cadre.project(${JSON.stringify(project_id)})
${thread}const task = await project.tasks.create(${agent}, ${given})
const stream = project.tasks.stream(task.id)
stream.on('text', (text) => process.stdout.write(text))
const { status, output, usage } = await stream.finalTask()
console.log({ status, output, usage })
`
}
