import { define, type AddCommand } from '../../define.ts'
import { LiveView, taskEventMembers } from '../../output/live-view.ts'
import { dataOnlyText, mustHaveCompleted, taskExits, watch, writeData } from '../../streams/watching.ts'

/** `cadre tasks watch`. */
export const addTasksWatch: AddCommand = (program) =>
  define(program, 'tasks watch', {
    summary: 'Watch a task until it ends.',
    description:
      'Prints text as it is written, steps, tokens and cost; --json prints one event per line. Ctrl-C does not affect the task.',
    args: ['<task_id>'],
    examples: [
      'cadre tasks watch task_01jcm3x5v8f9a2b4c6d8e0g2h4',
      'cadre tasks watch task_01jcm3x5v8f9a2b4c6d8e0g2h4 --data',
    ],
    exits: taskExits,
    async run(context, [task_id = ''], { data: dataOnly = false }) {
      if (!dataOnly) context.out.checkEventFields(taskEventMembers)
      const view = new LiveView(context.out, { hasText: !dataOnly })
      const task = await watch(context, context.client(), task_id, false, view)
      if (dataOnly) writeData(context.out, task)
      else mustHaveCompleted(task)
    },
  }).option('--data', dataOnlyText)
