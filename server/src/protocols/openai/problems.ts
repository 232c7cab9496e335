import { Problem } from '#contract/core/problems.ts'

/** A parameter that is not valid, by its name in the protocol: `tools[0].name`. */
export function badParameter(param: string, message: string, code = 'invalid_value'): Problem {
  return new Problem('validation_error', [{ field: param, message, code: 'invalid_format' }], {
    message,
    members: { param, code },
  })
}

/** A value of a request in words; only text can be made a text of without running what it brings. */
export function shown(value: unknown): string {
  return (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')).slice(0, 50)
}

/** A parameter that would ask for something that is not there: silence would fake it. */
export function unsupported(param: string, what: string): Problem {
  return badParameter(param, `${what} is not supported.`, 'unsupported_parameter')
}

export function modelNotFound(name: string): Problem {
  return new Problem('agent_not_found', undefined, {
    message: `There is no agent named ${name.slice(0, 100)} that this credential may run.${
      name.includes('/') ? '' : ' An agent whose name several have is named project/agent-name.'
    }`,
    members: { param: 'model' },
  })
}
