import { PageHeader } from '../../ui/page.tsx'

export default function WebhookPage() {
  return <PageHeader title="Webhook" />
}
