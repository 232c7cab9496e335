/**
 * Names of span attributes: those of OpenTelemetry's conventions for generative AI, and names under `cadre.` for the
 * rest. All have names and numbers as values, except the last five. Content of people, models and tools is exported
 * only if the operator enables it, because traces go to systems with other readers and another retention than tasks.
 */
export const attribute = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agent_id: 'gen_ai.agent.id',
  agent_name: 'gen_ai.agent.name',
  agent_version: 'gen_ai.agent.version',
  conversation_id: 'gen_ai.conversation.id',
  request_model: 'gen_ai.request.model',
  request_max_tokens: 'gen_ai.request.max_tokens',
  request_temperature: 'gen_ai.request.temperature',
  response_model: 'gen_ai.response.model',
  finish_reasons: 'gen_ai.response.finish_reasons',
  input_tokens: 'gen_ai.usage.input_tokens',
  output_tokens: 'gen_ai.usage.output_tokens',
  cached_tokens: 'gen_ai.usage.cache_read.input_tokens',
  tool_name: 'gen_ai.tool.name',
  tool_call_id: 'gen_ai.tool.call.id',
  project_id: 'cadre.project.id',
  task_id: 'cadre.task.id',
  task_attempt: 'cadre.task.attempt',
  step_id: 'cadre.step.id',
  step_index: 'cadre.step.index',
  step_attempt: 'cadre.step.attempt',
  tool_safety: 'cadre.tool.safety',
  system_instructions: 'gen_ai.system_instructions',
  input_messages: 'gen_ai.input.messages',
  output_messages: 'gen_ai.output.messages',
  tool_arguments: 'gen_ai.tool.call.arguments',
  tool_result: 'gen_ai.tool.call.result',
} as const
