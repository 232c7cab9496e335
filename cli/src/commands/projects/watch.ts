import { define, type AddCommand } from '../../define.ts'
import { plain } from '../../output.ts'
import type { ProjectStreamEvent } from '#sdk/project-stream.ts'

/** Shows what happens in a project. */
export const addProjectsWatch: AddCommand = (program) =>
  define(program, 'projects watch', {
    summary: 'Show what happens in a project.',
    description:
      'Every event of every task and every change of an agent, a line each, until Ctrl-C; --json writes each event on its line. A lost connection is made again, and no event of a task is missed.',
    args: ['[project_id]'],
    examples: ['cadre projects watch', 'cadre projects watch 42 --json'],
    async run(context, [project_id = context.project()]) {
      const { out } = context
      for await (const event of context.client().projects.stream(project_id)) {
        if (out.options.json || out.options.fields) out.event(event)
        else out.line(`${out.dim(event.created_at)} ${plain(lineOf(event))}`)
      }
    },
  })

function lineOf(event: ProjectStreamEvent): string {
  switch (event.type) {
    case 'project.snapshot':
      return `${event.type} agents: ${summary(event.data.agents)}; open tasks: ${summary(event.data.tasks)}`
    case 'agent.status':
      return `${event.type} ${event.agent_id} ${event.status}`
    default:
      return `${event.type} ${event.task_id} ${event.status}`
  }
}

function summary(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0)
  return some.map(([state, count]) => `${count} ${state}`).join(', ') || 'none'
}
