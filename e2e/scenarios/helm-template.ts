/** What a template is rendered with. */
export interface ChartValues {
  Values: unknown
  Release: { Name: string }
  Chart: { AppVersion: string }
}

/**
 * Renders what the templates of `deploy/helm` use of Helm's language: members, `range` over a map, `quote`, `add`, `toYaml`,
 * `nindent`, and `-` that takes white space away. Throws on everything else, so that a chart does not outgrow it in silence.
 */
export function renderTemplate(template: string, values: ChartValues): string {
  const tokens = template.replaceAll(/\s*\{\{-/g, '{{-').split(/(\{\{-? .*? -?\}\})/)
  return render(tokens, { at: 0 }, values, new Map())
}

type Names = ReadonlyMap<string, unknown>

function render(tokens: string[], position: { at: number }, values: ChartValues, names: Names): string {
  let text = ''
  while (position.at < tokens.length) {
    const token = tokens[position.at++]!
    const [, action] = /^\{\{-? (.*?) -?\}\}$/.exec(token) ?? []
    if (action === undefined) text += token
    else if (action === 'end') return text
    else if (action.startsWith('range ')) {
      const [, key, value, list] = /^range (\$\w+), (\$\w+) := (\S+)$/.exec(action) ?? []
      if (list === undefined) throw new Error(`not understood: ${action}`)
      const from = position.at
      const entries = Object.entries(evaluate(list, values, names) as object)
      for (const [name, one] of entries.length > 0 ? entries : [['', '']]) {
        position.at = from
        const inner = render(tokens, position, values, new Map([...names, [key!, name], [value!, one]]))
        if (entries.length > 0) text += inner
      }
    } else text += pipe(action, values, names)
  }
  return text
}

function pipe(action: string, values: ChartValues, names: Names): string {
  const [first = '', ...filters] = action.split(' | ')
  let result = call(first, values, names)
  for (const filter of filters) {
    const [, spaces] = /^nindent (\d+)$/.exec(filter) ?? []
    if (filter === 'quote') result = JSON.stringify(String(result))
    else if (spaces !== undefined) result = `\n${String(result).replaceAll(/^/gm, ' '.repeat(Number(spaces)))}`
    else throw new Error(`not understood: ${filter}`)
  }
  return String(result)
}

function call(text: string, values: ChartValues, names: Names): unknown {
  const [name, ...args] = text.split(' ')
  const given = args.map((word) => evaluate(word, values, names))
  if (args.length === 0) return evaluate(text, values, names)
  if (name === 'add') return given.reduce<number>((sum, one) => sum + Number(one), 0)
  // JSON is YAML.
  if (name === 'toYaml') return JSON.stringify(given[0], null, 2)
  throw new Error(`not understood: ${text}`)
}

function evaluate(word: string, values: ChartValues, names: Names): unknown {
  if (/^\d+$/.test(word)) return Number(word)
  if (names.has(word)) return names.get(word)
  if (!/^(\.\w+)+$/.test(word)) throw new Error(`not understood: ${word}`)
  let found: unknown = values
  for (const member of word.slice(1).split('.')) {
    found = (found as Record<string, unknown> | undefined)?.[member]
    if (found === undefined) throw new Error(`there is no ${word}`)
  }
  return found
}
