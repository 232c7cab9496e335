import { paths } from '../../paths.ts'
import type { LinkProps } from '@tanstack/react-router'
import type { Task } from '../../task-parts/types.ts'

/** What a person can do about a failure, and where. */
export interface Advice {
  text: string
  link?: { label: string; to: LinkProps }
}

/** The provider of a model's name: `openai/gpt-5` is of openai. */
function providerOf(model: string | undefined): string {
  return model?.split('/', 1)[0] ?? 'the provider'
}

/** What to do about the failure of a task; undefined where its message says all. */
export function adviceFor(
  { error, project_id, agent_id, status }: Pick<Task, 'error' | 'project_id' | 'agent_id' | 'status'>,
  model: string | undefined,
): Advice | undefined {
  const edit = { label: 'Edit the agent', to: paths.editAgent(project_id, agent_id) }
  const usage = { label: 'Budgets', to: paths.usage(project_id, { tab: 'budgets' }) }
  const providers = { label: 'Model providers', to: paths.modelProviders() }
  const provider = providerOf(model)
  if (status === 'expired')
    return {
      text: 'It waited longer than its queue allows. Raise the limit, or let the agent run more tasks at a time.',
      link: edit,
    }
  switch (error?.code) {
    case 'provider_not_configured':
      return {
        text: `Add ${provider} with a key, or choose a model of another provider for the agent. Then retry.`,
        link: providers,
      }
    case 'provider_credentials_refused':
      return {
        text: `The key of ${provider} is missing, wrong or may not use this model. Replace it. Then retry.`,
        link: providers,
      }
    case 'provider_rate_limited':
      return {
        text: `${provider} takes no more calls for now. Retry later, raise the quota there, or give the agent a fallback model.`,
        link: edit,
      }
    case 'provider_unavailable':
    case 'provider_timeout':
    case 'provider_bad_answer':
      return { text: `The fault is with ${provider}. Retry, or give the agent a fallback model.`, link: edit }
    case 'model_not_found':
      return { text: `${provider} has no model ${model ?? ''}. Choose another one.`, link: edit }
    case 'provider_refused_request':
    case 'unsupported_input':
    case 'file_missing':
      return { text: 'The model does not take this request. Change the input, the settings or the model.', link: edit }
    case 'context_exhausted':
    case 'context_length_exceeded':
    case 'conversation_too_long':
      return {
        text: 'The conversation is larger than the model reads. Let it be compacted earlier, or choose a larger model.',
        link: edit,
      }
    case 'max_steps_reached':
      return { text: 'Raise the limit of steps, or say in the instructions when to stop.', link: edit }
    case 'task_timeout':
      return { text: 'Raise the time limit of the task or of the agent.', link: edit }
    case 'budget_exceeded':
      return { text: 'Raise the budget, or wait until its period ends. Then retry.', link: usage }
    case 'price_unknown':
      return {
        text: `Set the price of ${model ?? 'the model'}, or choose a model whose price is known.`,
        link: providers,
      }
    case 'output_invalid':
      return {
        text: 'The answer did not have the form that was asked for. Simplify the schema, or choose a stronger model.',
        link: edit,
      }
    case 'delegated_task_failed':
      return { text: 'A task that it delegated failed: open it in the tree of delegated tasks.' }
    case 'outcome_unknown':
    case 'unknown_outcome':
      return { text: 'Look in the other system whether the call took effect before you retry.' }
    default:
      return undefined
  }
}
