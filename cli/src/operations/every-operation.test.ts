import assert from 'node:assert/strict'
import { test } from 'node:test'
import { operations } from '#contract/operations.ts'
import { exitCodes } from '#contract/core/exit-codes.ts'
import { leaves } from '../output/help-tree.ts'
import { clientProgram } from '../program.ts'

const all = leaves(clientProgram({}), '')
const byWords = new Map(all.map((command) => [command.command.replace('cadre ', ''), command]))

test('every operation of the contract has a command, or a reason for having none', () => {
  for (const { id, command, without_command } of operations) {
    if (command === undefined) assert.ok(without_command, `add command or without_command to ${id} in the contract`)
    else {
      assert.equal(without_command, undefined, `${id} has both`)
      assert.ok(byWords.has(command), `there is no command "${command}" for ${id}`)
    }
  }
})

test('every example is valid for its command, and every help lists the exit codes', () => {
  for (const { command, arguments: args, options, examples, exit_codes } of all) {
    assert.deepEqual(
      exit_codes.map(({ code }) => code),
      Object.values(exitCodes),
      command,
    )
    const flags = options.flatMap(({ flags }) => flags.replaceAll(/<[^>]*>/g, '').split(/[ ,]+/))
    assert.notEqual(examples.length, 0, command)
    for (const example of examples) {
      if (!example.includes(command)) assert.fail(`${example} is not an example of ${command}`)
      const given = example.slice(example.indexOf(command) + command.length).replaceAll(/'[^']*'/g, 'x')
      for (const [flag] of given.matchAll(/(?<=^| )-[\w-]+/g)) assert.ok(flags.includes(flag), `${example}: ${flag}`)
      const required = args.filter(({ is_required }) => is_required).length
      const bare = given
        .split(/ [-<|>]/)[0]!
        .trim()
        .split(' ')
        .filter((word) => word !== '')
      assert.ok(bare.length >= required, `${example}: ${bare.length} of ${required} arguments`)
    }
  }
})

test('no secret of the contract is an option', () => {
  for (const { id, body, command: args = '' } of operations) {
    const command = byWords.get(args)
    for (const [name, schema] of Object.entries(body?.properties ?? {})) {
      if (!('x-secret' in schema) || !command) continue
      const flags = command.options.map((option) => option.flags.split(' ')[0])
      assert.ok(!flags.includes(`--${name.replaceAll('_', '-')}`), `${id}: ${name}`)
    }
  }
})
