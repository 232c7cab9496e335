import { requestOf } from '../../operations/request.ts'
import { define, type AddCommand } from '../../define.ts'
import { untilInterrupted } from '../../interrupt.ts'
import { fileToSend } from '../../streams/upload.ts'

/** `cadre files upload`. */
export const addFilesUpload: AddCommand = (program) =>
  define(program, 'files upload', {
    summary: 'Upload a file.',
    description: 'The file gets an id, by which tasks refer to it. Its type is detected from its content.',
    args: ['<path>'],
    examples: ['cadre files upload invoice.pdf', 'cadre files upload scan.png --name receipt.png --jq .id'],
    async run(context, [path = ''], given) {
      const file = await fileToSend(path)
      const name = typeof given.name === 'string' ? given.name : file.name
      if (context.options.dryRun)
        return context.out.json(await requestOf(context, 'createFile', [], { name, bytes: file.content.size }))
      const project = await context.project()
      const client = context.client()
      context.out.entry(
        await untilInterrupted(async (signal) => client.files.upload(project, file.content, { name }, { signal })),
      )
    },
  }).option('--name <name>', 'Name of the file; its local name by default.')
