import { define, type AddCommand } from '../../define.ts'
import { text } from '../../fields.ts'
import { LiveView } from '../../live-view.ts'
import { mustHaveCompleted, watch } from '../../watching.ts'

/** Gives an agent a task, and shows it. */
export const addTasksRun: AddCommand = (program) =>
  define(program, 'tasks run', {
    summary: 'Give an agent a task, and show it while it is worked on.',
    description:
      'The exit code is 0 where it completed. Ctrl-C asks whether it is to be canceled; without an answer it goes on. `tasks create` has all that a task can be given.',
    args: ['<agent_id>', '<input>'],
    examples: [
      "cadre tasks run agent_01jcm3x5v8f9a2b4c6d8e0g2h4 'What are your opening hours?'",
      'cadre tasks run agent_01jcm3x5v8f9a2b4c6d8e0g2h4 @question.txt --json',
    ],
    async run(context, [agent_id = '', input = ''], { thread }) {
      const body = { input: await text(input), ...(typeof thread === 'string' ? { thread_id: thread } : {}) }
      const project = context.project()
      if (context.options.dryRun) return context.out.line(JSON.stringify({ method: 'POST', agent_id, body }, null, 2))
      const client = context.client()
      // Before the request: somebody waits for a first sign of life.
      const view = new LiveView(context.out)
      const { id } = await client.tasks.create(project, agent_id, body).finally(() => view.pause())
      view.resume()
      mustHaveCompleted(await watch(context, client, id, true, view))
    },
  }).option('--thread <id>', 'The conversation that it goes on.')
