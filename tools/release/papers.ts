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

interface Bill {
  serialNumber?: string
  metadata: { timestamp?: string; component: { name: string } }
}

/** What npm says is in Cadre (CycloneDX), with the time of the release and a serial number that its content gives. */
export function softwareBill(text: string, epoch_s: number): string {
  const bill = JSON.parse(text) as Bill
  bill.metadata.timestamp = new Date(epoch_s * 1000).toISOString()
  // npm takes the name of the folder.
  bill.metadata.component.name = 'cadre'
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
