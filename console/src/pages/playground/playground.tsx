import { PageHeader } from '../../ui/page.tsx'

export default function PlaygroundPage() {
  return <PageHeader title="Playground" />
}
