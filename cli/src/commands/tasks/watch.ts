import { define, type AddCommand } from '../../define.ts'
import { LiveView } from '../../output/live-view.ts'
import { dataOnlyText, mustHaveCompleted, taskExits, watch, writeData } from '../../streams/watching.ts'

/** Shows a task while it is worked on. */
export const addTasksWatch: AddCommand = (program) =>
  define(program, 'tasks watch', {
    summary: 'Show a task while it is worked on.',
    description:
      'Text as it is written, steps, tokens and cost; --json writes each event on its line. Ctrl-C leaves the task alone.',
    args: ['<task_id>'],
    examples: [
      'cadre tasks watch task_01jcm3x5v8f9a2b4c6d8e0g2h4',
      'cadre tasks watch task_01jcm3x5v8f9a2b4c6d8e0g2h4 --data',
    ],
    exits: taskExits,
    async run(context, [task_id = ''], { data: dataOnly = false }) {
      const view = new LiveView(context.out, { hasText: !dataOnly })
      const task = await watch(context, context.client(), task_id, false, view)
      if (dataOnly) writeData(context.out, task)
      else mustHaveCompleted(task)
    },
  }).option('--data', dataOnlyText)
