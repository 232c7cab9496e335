import type { Command } from 'commander'
import { operations } from '#contract/operations.ts'
import { addApi } from './commands/api.ts'
import { addConfigView } from './commands/config/view.ts'
import { addConfigSet } from './commands/config/set.ts'
import { addLogin } from './commands/login.ts'
import { addLogout } from './commands/logout.ts'
import { addProjectsUse } from './commands/projects/use.ts'
import { addWhoami } from './commands/whoami.ts'
import { type AddCommand, makeProgram } from './define.ts'
import type { Environment } from './config.ts'
import { operationCommand } from './operation-command.ts'
import { operationWords } from './operation-words.ts'

/** Commands that are more than an operation; they take the place of one with the same words. */
const own: Readonly<Record<string, AddCommand>> = {
  api: addApi,
  'config view': addConfigView,
  'config set': addConfigSet,
  login: addLogin,
  logout: addLogout,
  'projects use': addProjectsUse,
  whoami: addWhoami,
}

/** All commands that speak to a service. */
export function clientProgram(env: Environment): Command {
  const program = makeProgram(env)
  program.description('Commands that speak to a service.').exitOverride()
  program.configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'cadre: ')) })
  program.addHelpText('after', '\n`cadre <noun> <verb> --help` says more of one, with an example.')
  for (const operation of operations) {
    const words = operationWords[operation.id]
    if (words !== undefined && !Object.hasOwn(own, words)) operationCommand(program, operation, words)
  }
  for (const add of Object.values(own)) add(program)
  return program
}
