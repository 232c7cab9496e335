import { PageHeader } from '../../ui/page.tsx'

export default function AgentPage() {
  return <PageHeader title="Agent" />
}
