import { run } from './run.ts'

/** The reader of the output may stop reading, as `head` does. */
process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))

const code = await run(process.argv.slice(2), process.env)
await new Promise((resolve) => process.stdout.write('', resolve))
process.exit(code)
