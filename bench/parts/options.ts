import { basename } from 'node:path'
import { parseArgs, type ParseArgsOptionsConfig } from 'node:util'

/**
 * The options of a script, as `parseArgs` gives their values. `--help` prints them with what they are where nothing is said; one that is
 * not known does too, and ends with code 2.
 */
export function readOptions<T extends ParseArgsOptionsConfig>(options: T) {
  const script = basename(process.argv[1] ?? '')
  const usage = [
    `node bench/${script} [options]`,
    ...Object.entries(options).map(
      ([name, { type, default: usual }]) =>
        `  --${name}${type === 'boolean' ? '' : ' <value>'}`.padEnd(24) + (usual ? String(usual) : ''),
    ),
  ].join('\n')
  try {
    const { values } = parseArgs({ options: { ...options, help: { type: 'boolean' } } })
    if (!('help' in values && values.help)) return parseArgs({ options }).values
    console.log(usage)
    process.exit(0)
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`)
    process.exit(2)
  }
}
