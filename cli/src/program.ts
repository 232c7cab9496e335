import type { Command } from 'commander'
import { operations } from '#contract/operations.ts'
import { addApi } from './commands/api.ts'
import { addConfigView } from './commands/config/view.ts'
import { addConfigSet } from './commands/config/set.ts'
import { addLogin } from './commands/login.ts'
import { addLogout } from './commands/logout.ts'
import { addProjectsUse } from './commands/projects/use.ts'
import { addProjectsWatch } from './commands/projects/watch.ts'
import { addWebhooksListen } from './commands/webhooks/listen.ts'
import { addWebhooksTrigger } from './commands/webhooks/trigger.ts'
import { addWhoami } from './commands/whoami.ts'
import { addAgentsConnect } from './commands/agents/connect.ts'
import { addAgentsLogs } from './commands/agents/logs.ts'
import { addAgentsResume } from './commands/agents/resume.ts'
import { addApprovalsApprove } from './commands/approvals/approve.ts'
import { addApprovalsDeny } from './commands/approvals/deny.ts'
import { addCredentialsConnect } from './commands/credentials/connect.ts'
import { addCompletion } from './commands/completion.ts'
import { addConfigUnset } from './commands/config/unset.ts'
import { addFilesUpload } from './commands/files/upload.ts'
import { addOpen } from './commands/open.ts'
import { addProfilesList } from './commands/profiles/list.ts'
import { addProfilesUse } from './commands/profiles/use.ts'
import { addTasksRun } from './commands/tasks/run.ts'
import { addTasksWatch } from './commands/tasks/watch.ts'
import { addToolsServe } from './commands/tools/serve.ts'
import { type AddCommand, makeProgram, mention } from './define.ts'
import type { Environment } from './config/config.ts'
import { operationCommand } from './operations/operation-command.ts'

/** Commands that do more than an operation; they replace one with the same words. */
const own: Readonly<Record<string, AddCommand>> = {
  api: addApi,
  'config view': addConfigView,
  'config set': addConfigSet,
  login: addLogin,
  logout: addLogout,
  'projects use': addProjectsUse,
  'projects watch': addProjectsWatch,
  whoami: addWhoami,
  'agents connect': addAgentsConnect,
  'agents logs': addAgentsLogs,
  'agents resume': addAgentsResume,
  'approvals approve': addApprovalsApprove,
  'approvals deny': addApprovalsDeny,
  'credentials connect': addCredentialsConnect,
  completion: addCompletion,
  'config unset': addConfigUnset,
  'files upload': addFilesUpload,
  open: addOpen,
  'profiles list': addProfilesList,
  'profiles use': addProfilesUse,
  'tasks run': addTasksRun,
  'tasks watch': addTasksWatch,
  'tools serve': addToolsServe,
  'webhooks listen': addWebhooksListen,
  'webhooks trigger': addWebhooksTrigger,
}

/**
 * Makes the program with the commands that call a service: those that begin with `noun` if there are any, otherwise all.
 * Making all takes longer than most commands, so with `isBrief` they have only their words, which are enough for the help of
 * the program and for suggestions.
 */
export function clientProgram(
  env: Environment,
  { noun, isBrief = false }: { noun?: string | undefined; isBrief?: boolean } = {},
): Command {
  const program = makeProgram(env)
  program.commandsGroup('Commands that call a service, from any machine (run `cadre login` first):')
  const made = operations.flatMap((operation) => {
    const { command: commandName } = operation
    if (commandName === undefined || Object.hasOwn(own, commandName)) return []
    return [{ commandName, add: () => operationCommand(program, operation, commandName) }]
  })
  const others = Object.entries(own).map(([commandName, add]) => ({ commandName, add: () => void add(program) }))
  const all = [...made, ...others]
  const named = all.filter(({ commandName }) => commandName.split(' ')[0] === noun)
  for (const { commandName, add } of named.length > 0 ? named : all) {
    // The help shows a command of one word with its summary.
    if (isBrief && named.length === 0 && commandName.includes(' ')) mention(program, commandName)
    else add()
  }
  return program
}
