import { Problem } from '#contract/core/problems.ts'

/** The problem of an invalid parameter; `param` is its path, such as `tools[0].name`. */
export function badParameter(param: string, message: string, code = 'invalid_value'): Problem {
  return new Problem('validation_error', [{ field: param, message, code: 'invalid_format' }], {
    message,
    members: { param, code },
  })
}

/**
 * A value of a request for a message. Only primitive values are converted, because an object could bring its own
 * `toString`.
 */
export function shown(value: unknown): string {
  return (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')).slice(0, 50)
}

/** The problem of an unsupported parameter. Ignoring it would pretend that it has an effect. */
export function unsupported(param: string, what: string): Problem {
  return badParameter(param, `${what} is not supported.`, 'unsupported_parameter')
}

export function modelNotFound(name: string): Problem {
  return new Problem('agent_not_found', undefined, {
    message: `There is no agent named ${name.slice(0, 100)} that this credential may run.${
      name.includes('/') ? '' : ' If several agents have this name, use project/agent-name.'
    }`,
    members: { param: 'model' },
  })
}
