import type { TaskInput } from './input.ts'

/** The same as a program over the SDK: giving an agent a task, and reading what it says. */
export function asSdk(project_id: string, agent_id: string, input: TaskInput, origin: string): string {
  return `import { Cadre } from '@cadre/sdk'

const cadre = new Cadre({ apiKey: process.env.CADRE_API_KEY, baseURL: ${JSON.stringify(origin)} })
const project = cadre.project(${JSON.stringify(project_id)})
const task = await project.tasks.create(${JSON.stringify(agent_id)}, ${JSON.stringify({ input })})
const stream = project.tasks.stream(task.id)
stream.on('text', (text) => process.stdout.write(text))
const { status, output, usage } = await stream.finalTask()
console.log({ status, output, usage })
`
}
