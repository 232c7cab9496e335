import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createTask } from '#contract/tasks/tasks.ts'
import { check } from './validation.ts'

const content = (value: unknown): unknown => [{ role: 'user', content: value }]
const part = (value: unknown): unknown => content([value])
const at = 'input[0].content'

/** Invalid inputs of a task, whose schema is a union, with the issue of the alternative that was meant. */
const cases: readonly [unknown, string, RegExp][] = [
  [5, 'input', /^does not have the right format: The input: a text, messages, or an object/],
  [null, 'input', /^input is required$/],
  ['', 'input', /^input must not be empty$/],
  [[], 'input', /^input must not be empty$/],
  [['x'], 'input[0]', /^must be an object$/],
  [[{ content: 'x' }], 'input[0].role', /is required$/],
  [[{ role: 'x', content: 'y' }], 'input[0].role', /^must be one of system, user, assistant, tool$/],
  [content(5), at, /^does not have the right format: A text, or a list of parts/],
  [content([]), at, /must not be empty$/],
  [part('x'), `${at}[0]`, /^must be an object$/],
  [part({ type: 'text', text: '' }), `${at}[0].text`, /must not be empty$/],
  [part({ type: 'text' }), `${at}[0].text`, /is required$/],
  [part({ text: 'x' }), `${at}[0].type`, /is required$/],
  [part({ type: 'picture', file_id: 'x' }), `${at}[0].type`, /^must be one of text, image, file$/],
  [
    part({ type: 'image', url: 'http://example.com' }),
    `${at}[0].url`,
    /^does not have the right format: A `data:` URL/,
  ],
  [part({ type: 'file', url: 'data:x' }), `${at}[0].file_id`, /is required$/],
]

describe('a value of a union', () => {
  for (const [input, field, message] of cases)
    it(`the issue of an invalid value of a union is that of the alternative that was meant: ${JSON.stringify(input)}`, () => {
      const issues = check(createTask.body, { input })
      assert.deepEqual(
        issues.map((issue) => issue.field),
        [field],
      )
      assert.match(issues[0]!.message, message)
    })
})
