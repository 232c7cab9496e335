import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { judgeCitations, readDefinitions } from './citations.ts'

const list = `# Ids

- **D1** The first.
- **D2** The second.
- **D3** The third.
- **O1** About OAuth.
- **P3** A promise about tasks.
- **R8** A promise.
- **F12** A fault.
`
const names = ['0019-per-model-circuit-breaker.md', 'api.md']
/** Cites every decision. */
const all = { file: 'server/src/all.ts', text: '/** Cites decisions D1–D3 and O1. */' }

/** What is wrong with a text beside one that cites all ids. */
function complaintsOn(text: string, file = 'server/src/some.ts'): string[] {
  return judgeCitations([all, { file, text }], readDefinitions(list, names)).errors
}

describe('the check of citations', () => {
  it('the check of citations reads every id with its line, and the numbers of decision files', () => {
    const { ids, files } = readDefinitions(list, names)
    assert.deepEqual([...ids], ['D1', 'D2', 'D3', 'O1', 'P3', 'R8', 'F12'])
    assert.deepEqual([...files], ['0019'])
  })

  for (const text of [
    '/** Known (decision D1). */',
    '/** Known (spec 7.3, decisions D1, D2 and D3). */',
    '// Decision D1 says so, and decision 0019.',
    '/** What was chosen (decisions 0019, D1 and O1). */',
    'It keeps promise P3.',
    '/**\n * Known by decisions\n * D1 and D2.\n */',
    "it('delays no other (fault F12, promise R8)')",
    'Run `npm run faults -- F12`.',
    'The decision was made on 2026-11-20; it took 3 tasks; spec 12; %F0%9F; 0xD9; #D9; S256.',
  ])
    it(`the check of citations accepts ${JSON.stringify(text)}`, () => assert.deepEqual(complaintsOn(text), []))

  for (const [text, complaint] of [
    ['/** Unknown (decision D999). */', 'D999 is not in docs/decisions/api.md.'],
    ['/**\n * Unknown by decisions\n * D1 and D999.\n */', 'D999 is not in docs/decisions/api.md.'],
    ['A range, decisions D2–D5.', 'D5 is not in docs/decisions/api.md.'],
    ["it('keeps promise R99')", 'R99 is not in docs/decisions/api.md.'],
    ['Follows decision O9.', 'O9 is not in docs/decisions/api.md.'],
    ['Keeps promise P9.', 'P9 is not in docs/decisions/api.md.'],
    ['Survives fault F99.', 'F99 is not in docs/decisions/api.md.'],
    ['Follows decision 0099.', 'docs/decisions has no file 0099.'],
    ['/** Alone (D1). */', 'Write "decision D1", not "D1" alone.'],
    ['/** Alone (reliability R8). */', 'Write "promise R8", not "R8" alone.'],
    ['/** The wrong word (promise F12). */', 'Write "fault F12", not "F12" alone.'],
    ['/** A part (decision D1a). */', '"decision D1a" is no id of docs/decisions.'],
    ['/** A part (decision D1.7). */', '"decision D1.7" is no id of docs/decisions.'],
    ['/** A section (decisions 1.4). */', '"decision 1.4" is no id of docs/decisions.'],
    ['/** A section (decisions D1, 1.3.5). */', '"decision 1.3.5" is no id of docs/decisions.'],
    ['/** A number alone (promise 3). */', '"promise 3" is no id of docs/decisions.'],
    ['/** A section (tasks 2 and 6). */', '"tasks 2" cites a document outside the repository.'],
    ['/** A section (engine 2). */', '"engine 2" cites a document outside the repository.'],
    ['/** A table (decision table 2.1). */', '"decision table 2.1" cites a document outside the repository.'],
  ] as const)
    it(`the check of citations refuses ${JSON.stringify(text)}`, () => {
      const errors = complaintsOn(text)
      assert.ok(
        errors.some((line) => line.startsWith('server/src/some.ts:') && line.endsWith(`: ${complaint}`)),
        errors.join('\n'),
      )
    })

  it('the check of citations names the line of a citation', () => {
    assert.deepEqual(complaintsOn('const a = 1\n\n// Decision D999.'), [
      'server/src/some.ts:3: D999 is not in docs/decisions/api.md.',
    ])
  })

  it('the check of citations judges ids of migrations, and not their form, because migrations are never edited', () => {
    const file = 'server/migrations/0001_first.sql'
    assert.deepEqual(complaintsOn('-- Known (decisions 1.4, D1).', file), [])
    assert.deepEqual(complaintsOn('-- Unknown (D999).', file), [`${file}:1: D999 is not in docs/decisions/api.md.`])
  })

  it('the check of citations accepts ids of promises and faults alone in files about faults, where they must be defined too', () => {
    assert.deepEqual(complaintsOn("run.holds('R8', 'F12')", 'e2e/faults/some.ts'), [])
    assert.equal(complaintsOn("run.holds('R9')", 'e2e/faults/some.ts').length, 1)
    assert.equal(complaintsOn('D1', 'e2e/faults/some.ts').length, 1)
  })

  it('the check of citations reports a decision that nothing cites, and keeps promises and faults', () => {
    const { errors } = judgeCitations([], readDefinitions('- **D1** One.\n- **P1** Two.\n- **F1** Three.\n', []))
    assert.deepEqual(errors, ['docs/decisions/api.md: Nothing cites D1. Remove its line.'])
  })
})
