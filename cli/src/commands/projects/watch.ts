import type { ProjectStreamEvent } from '#sdk/project-stream.ts'
import { define, type AddCommand } from '../../define.ts'
import { untilInterrupted } from '../../interrupt.ts'
import type { Output } from '../../output/output.ts'

/** `cadre projects watch`. */
export const addProjectsWatch: AddCommand = (program) =>
  define(program, 'projects watch', {
    summary: 'Watch the events of a project.',
    description:
      'Prints one line for each event of its tasks and each status change of its agents; --json prints one object per line. Resumes after a lost connection. Ends with Ctrl-C.',
    args: ['[project_id]'],
    examples: ['cadre projects watch', 'cadre projects watch --events task.completed,task.failed --json'],
    async run(context, [project_id], { events }) {
      const { out } = context
      const project = project_id ?? (await context.project())
      const wanted = typeof events === 'string' ? events.split(',').map((name) => name.trim()) : undefined
      await untilInterrupted(async (signal) => {
        const stream = context.client().projects.stream(project, {
          signal,
          onState: (state) => state === 'reconnecting' && out.note('The connection was lost; reconnecting.'),
        })
        for await (const event of stream)
          if (wanted === undefined || wanted.some((name) => matches(event.type, name))) show(out, event)
      })
    },
  }).option(
    '--events <names>',
    'Only events of these types, separated by commas; task.* is all types with that prefix.',
  )

/** Whether an event type equals a name, or has the prefix of a name such as `task.*`. */
export function matches(type: string, name: string): boolean {
  return name.endsWith('.*') ? type.startsWith(name.slice(0, -1)) : type === name
}

function show(out: Output, event: ProjectStreamEvent): void {
  if (out.options.json) return out.event(event)
  switch (event.type) {
    case 'project.snapshot': {
      const { tasks, agents, resumed } = event.data
      if (resumed) return
      out.row([event.created_at, event.type, event.project_id, counts('tasks', tasks), counts('agents', agents)])
      break
    }
    case 'agent.status':
      out.row([event.created_at, event.type, event.agent_id, event.status])
      break
    default:
      out.row([event.created_at, event.type, event.task_id, event.status, event.agent_id])
  }
}

/** `tasks: 3 queued, 1 running`. */
function counts(what: string, states: Partial<Record<string, number>>): string {
  const some = Object.entries(states).filter(([, count]) => count !== 0)
  return `${what}: ${some.map(([state, count]) => `${count} ${state}`).join(', ') || 'none'}`
}
